// What Berth uses of libtorch: tensors, gradients, linear layers and Adam. <torch/torch.h> has also what loads data,
// stores models and all other layers, and takes twice as long to precompile, and every source a fifth longer to
// compile.
#pragma once

#include <torch/autograd.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
