#!/usr/bin/env python3
"""Writes tests/data/foreign: one small network of two branches as TensorFlow, TensorFlow Lite and Paddle store it, and
a loop of TensorFlow's.

Made with tensorflow-cpu 2.21 and paddlepaddle 3.3; the tests need neither. Run in tests/data/foreign.
"""
import os

os.environ["FLAGS_enable_pir_api"] = "0"  # .pdmodel instead of Paddle's newer JSON


def tensorflow_files():
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    tf.random.set_seed(1)
    layers = tf.keras.layers
    image = tf.keras.Input((32, 32, 3), name="image")
    left = layers.Conv2D(8, 3, padding="same", activation="relu", name="left")(image)
    right = layers.Conv2D(8, 5, padding="same", activation="relu", name="right")(image)
    joined = layers.Concatenate(name="join")([left, right])
    pooled = layers.GlobalAveragePooling2D(name="pool")(joined)
    model = tf.keras.Model(image, layers.Dense(10, name="head")(pooled))

    function = tf.function(lambda x: model(x)).get_concrete_function(
        tf.TensorSpec((None, 32, 32, 3), tf.float32, name="image"))
    with open("branches.pb", "wb") as file:
        file.write(convert_variables_to_constants_v2(function).graph.as_graph_def().SerializeToString())
    module = tf.Module()
    module.call = tf.function(lambda image: {"scores": tf.nn.relu(image) + 1.0},
                              input_signature=[tf.TensorSpec((None, 8), tf.float32, name="image")])
    tf.saved_model.save(module, "saved", signatures=module.call)
    with open("branches.tflite", "wb") as file:
        file.write(tf.lite.TFLiteConverter.from_keras_model(model).convert())

    # Ten rounds, which nothing says but a counter.
    weight = tf.Variable(tf.random.normal((8, 8)))

    def counted(x):
        return tf.while_loop(lambda i, y: i < 10, lambda i, y: (i + 1, tf.tanh(y @ weight)), (0, x))[1]

    function = tf.function(counted).get_concrete_function(tf.TensorSpec((4, 8)))
    with open("counted.pb", "wb") as file:
        graph = convert_variables_to_constants_v2(function, lower_control_flow=False).graph
        file.write(graph.as_graph_def().SerializeToString())


def paddle_files():
    import paddle

    paddle.enable_static()
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        image = paddle.static.data("image", [None, 3, 32, 32], "float32")
        left = paddle.static.nn.conv2d(image, 8, 3, padding=1, act="relu")
        right = paddle.static.nn.conv2d(image, 8, 5, padding=2, act="relu")
        first = paddle.static.nn.conv2d(left, 10, 1)
        second = paddle.static.nn.conv2d(right, 10, 1)
        first = paddle.nn.functional.relu(paddle.static.nn.batch_norm(first, is_test=True))
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(start)
    paddle.static.save_inference_model("branches", [image], [first, second], executor, program=main)


tensorflow_files()
paddle_files()
