# Outside libraries. Each is linked by the one library whose line in the top CMakeLists.txt names it.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(pugixml 1.13 REQUIRED)

# Of Debian's ONNX only the messages of its files are used, which are a library of their own over protobuf; its headers
# want these two definitions, which its own CMake package does not name.
find_library(BERTH_ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(berth_onnx INTERFACE)
target_compile_definitions(berth_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(berth_onnx INTERFACE "${BERTH_ONNX_PROTO_LIBRARY}" protobuf::libprotobuf)

# Debian's RE2 has no CMake package.
find_library(BERTH_RE2_LIBRARY re2 REQUIRED)
add_library(berth_re2 INTERFACE)
target_link_libraries(berth_re2 INTERFACE "${BERTH_RE2_LIBRARY}")

# Nor has its METIS.
find_library(BERTH_METIS_LIBRARY metis REQUIRED)
add_library(berth_metis INTERFACE)
target_link_libraries(berth_metis INTERFACE "${BERTH_METIS_LIBRARY}")

if(BERTH_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(BERTH_BENCH)
  find_package(benchmark 1.7 REQUIRED)
endif()

# berth_wheel_folder(<name> <variable>): where `./dev wheel <name>` unpacks.
function(berth_wheel_folder name variable)
  file(STRINGS "${CMAKE_SOURCE_DIR}/third_party/wheels.txt" pin REGEX "^${name} ")
  string(REGEX REPLACE "^[^ ]+ +([^ ]+) .*" "\\1" version "${pin}")
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  set(${variable} "${cache}/berth/${name}-${version}" PARENT_SCOPE)
endfunction()

# berth_optional(<name> HEADER h LIBRARY l [WHEEL w ROOT dir])
# makes the target berth_<name> of a library that may be absent: from the wheel <w> of third_party/wheels.txt if it has been
# fetched (`./dev wheel <w>`), where `include` and `lib` are under <dir>, or else from the system. -DBERTH_WITH_<NAME>=OFF
# looks for neither. What is built of it says so by NEEDS or berth_file_needs().
function(berth_optional name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;LIBRARY;WHEEL;ROOT" "")
  string(TOUPPER "${name}" upper)
  option(BERTH_WITH_${upper} "Use ${name} where it is found" ON)
  set(root "")
  if(arg_WHEEL)
    berth_wheel_folder(${arg_WHEEL} root)
    string(APPEND root "/${arg_ROOT}")
  endif()
  # Not cached: a wheel that is fetched later is found by the next configuration.
  unset(include CACHE)
  unset(library CACHE)
  if(BERTH_WITH_${upper})
    find_path(include "${arg_HEADER}" HINTS "${root}/include" PATH_SUFFIXES "${name}" NO_CACHE)
    find_library(library "${arg_LIBRARY}" HINTS "${root}/lib" NO_CACHE)
  endif()
  if(include AND library)
    add_library(berth_${name} INTERFACE)
    target_include_directories(berth_${name} SYSTEM INTERFACE "${include}")
    target_link_libraries(berth_${name} INTERFACE "${library}")
  endif()
endfunction()

# A partitioner that papers compare with. Debian's brings forty packages of MPI along: where somebody has installed it.
berth_optional(scotch HEADER scotch.h LIBRARY scotch)

# By which processes train together (OpenMPI): where somebody has installed it, for the same reason.
berth_optional(mpi HEADER mpi.h LIBRARY mpi)

# What solves linear programs. Debian 12 has no HiGHS: from the wheel `highsbox`.
berth_optional(highs HEADER interfaces/highs_c_api.h LIBRARY highs WHEEL highsbox ROOT highsbox/highs_dist)

if(BERTH_TESTS)
  # An independent simulator, which tests/with_simgrid compares with where it is installed.
  berth_optional(simgrid HEADER simgrid/s4u.hpp LIBRARY simgrid)
endif()

# berth_torch: libtorch for processors, from the wheel `torch` of third_party/wheels.txt (its own CMake package fails where
# no CUDA is installed), or a user's own PyTorch, which may have CUDA, by -DTorch_DIR=DIR.
option(BERTH_WITH_TORCH "Use libtorch where it is found" ON)
function(berth_torch)
  if(NOT BERTH_WITH_TORCH)
    return()
  endif()
  if(Torch_DIR)
    find_package(Torch REQUIRED)
    add_library(berth_torch INTERFACE)
    target_link_libraries(berth_torch INTERFACE ${TORCH_LIBRARIES})
    return()
  endif()
  berth_wheel_folder(torch wheel)
  if(NOT EXISTS "${wheel}/torch/lib/libtorch_cpu.so")
    return()
  endif()
  add_library(berth_torch INTERFACE)
  # The wheel brings an fmt of its own, whose names differ from those that the other folders link: the system's goes first.
  get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/before_torch")
  file(CREATE_LINK "${fmt_include}/fmt" "${CMAKE_BINARY_DIR}/before_torch/fmt" SYMBOLIC)
  target_include_directories(berth_torch SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/before_torch"
    "${wheel}/torch/include" "${wheel}/torch/include/torch/csrc/api/include")
  target_link_directories(berth_torch INTERFACE "${wheel}/torch/lib")
  target_link_options(berth_torch INTERFACE
    "LINKER:--no-as-needed,-rpath,${wheel}/torch/lib,-rpath-link,${wheel}/nvidia/cu13/lib")
  target_link_libraries(berth_torch INTERFACE torch_cpu c10)
endfunction()
berth_torch()

# berth_openvino: OpenVINO's runtime, from the wheel `openvino` of third_party/wheels.txt, or a user's own by
# -DOpenVINO_DIR=DIR, the folder of its OpenVINOConfig.cmake.
option(BERTH_WITH_OPENVINO "Use OpenVINO where it is found" ON)
function(berth_openvino)
  if(NOT BERTH_WITH_OPENVINO)
    return()
  endif()
  if(OpenVINO_DIR)
    find_package(OpenVINO REQUIRED CONFIG COMPONENTS Runtime ONNX Threading)
  else()
    berth_wheel_folder(openvino wheel)
    if(NOT EXISTS "${wheel}/openvino/cmake/OpenVINOConfig.cmake")
      return()
    endif()
    find_package(OpenVINO REQUIRED CONFIG COMPONENTS Runtime ONNX Threading PATHS "${wheel}/openvino/cmake" NO_DEFAULT_PATH)
    # Or a newer wheel would not be looked for.
    unset(OpenVINO_DIR CACHE)
  endif()
  add_library(berth_openvino INTERFACE)
  target_link_libraries(berth_openvino INTERFACE openvino::runtime openvino::frontend::onnx openvino::threading)
endfunction()
berth_openvino()
