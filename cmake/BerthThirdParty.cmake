# Outside libraries. Each is linked by the one library whose line in the top CMakeLists.txt names it.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(pugixml 1.13 REQUIRED)

# Debian's ONNX is a pair of libraries over protobuf, whose headers want these two definitions. Its own CMake package
# names neither protobuf nor the definitions, hence a target of our own.
find_library(BERTH_ONNX_LIBRARY onnx REQUIRED)
find_library(BERTH_ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(berth_onnx INTERFACE)
target_compile_definitions(berth_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(berth_onnx INTERFACE
  "${BERTH_ONNX_LIBRARY}" "${BERTH_ONNX_PROTO_LIBRARY}" protobuf::libprotobuf)

if(BERTH_TESTS)
  enable_testing()
  find_package(GTest 1.12 REQUIRED)
endif()
if(BERTH_BENCH)
  find_package(benchmark REQUIRED)
endif()
