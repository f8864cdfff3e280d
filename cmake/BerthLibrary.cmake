# berth_library(), and the program, the tests and the benchmarks that are made of libraries.

# berth_library(<folder> [DEPS folders] [LOADS folders] [EXPORTS libs] [LIBS libs] [TEST_DEPS folders] [NEEDS name]
#               [PRECOMPILE header] [APART] [COLD])
# makes berth_<folder> of src/<folder>/*.cc and, where there are *_test.cc, the test binary berth_<folder>_test.
# A folder without sources, or one that NEEDS an outside library that is not here, is an empty interface library, so that
# the lines above it need not know. Those above see BERTH_HAS_<FOLDER>=0 or 1 of a folder that NEEDS something.
# LOADS: folders that are not linked, but loaded when they are needed (berth_module).
# APART: of another program, which the tests that are linked with all folders are not linked with.
# COLD: reads and writes text, once a run: compiled with -O1, which takes three quarters of the time of -O3.
function(berth_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "APART;COLD" "NEEDS;PRECOMPILE" "DEPS;LOADS;EXPORTS;LIBS;TEST_DEPS")
  set(target berth_${folder})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main|/module)\\.cc$")
  set(has 1)
  if(arg_NEEDS)
    if(TARGET berth_${arg_NEEDS})
      list(APPEND arg_LIBS berth_${arg_NEEDS})
    else()
      message(STATUS "src/${folder} is left out: it needs ${arg_NEEDS}")
      set(has 0)
      set(sources "")
      set(tests "")
    endif()
  endif()

  list(TRANSFORM arg_DEPS PREPEND berth_)
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC berth_flags ${arg_DEPS} ${arg_EXPORTS} PRIVATE ${arg_LIBS})
    set(visible PUBLIC)
    berth_use_precompiled(${target} sources ${arg_PRECOMPILE})
    if(BERTH_UNITY)
      berth_compile_together(${target} ${sources})
    endif()
    if(arg_COLD)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE berth_flags ${arg_DEPS} ${arg_EXPORTS})
    set(visible INTERFACE)
  endif()
  if(arg_NEEDS)
    string(TOUPPER "BERTH_HAS_${folder}" definition)
    target_compile_definitions(${target} ${visible} ${definition}=${has})
  endif()
  foreach(module IN LISTS arg_LOADS)
    target_compile_definitions(${target} ${visible}
      $<TARGET_PROPERTY:berth_${module},INTERFACE_COMPILE_DEFINITIONS>)
    if(TARGET berth_${module}_module)
      get_target_property(host berth_${module}_module BERTH_HOST)
      target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
      target_link_options(${target} INTERFACE ${host})
      add_dependencies(${target} berth_${module}_module)
    endif()
  endforeach()
  if(NOT arg_APART)
    set_property(GLOBAL APPEND PROPERTY BERTH_LIBRARIES ${target})
  endif()

  if(BERTH_TESTS AND tests)
    list(TRANSFORM arg_TEST_DEPS PREPEND berth_)
    add_executable(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE ${target} ${arg_LIBS} ${arg_TEST_DEPS})
    berth_use_precompiled(${target}_test tests ${arg_PRECOMPILE})
    berth_test(${folder} ${target}_test)
  endif()
endfunction()

# berth_compile_together(<target> sources): sixteen of them as one, since most of the time from nothing is what every
# source reads and instantiates again. With 24 as one, a header of its own is read sooner than precompiled
# (docs/decisions/0001-build-and-third-party.md).
function(berth_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  get_target_property(header ${target} PRECOMPILE_HEADERS)
  if(header)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 24 DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  # Each reader of a data set names what it reads File, Node and Edge.
  list(FILTER ARGN INCLUDE REGEX "/read_[a-z]+\\.cc$")
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # A class that is made of what its file keeps to itself looks like one of a header there; and of Device{...} GCC 12
  # takes the string in an empty optional for one that is used, more often the more it can inline.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage;-Wno-maybe-uninitialized>)
endfunction()

# berth_module(<folder> LIBS libs HOST folders)
# makes libberth_<folder>.so of the folder and its module.cc, at the top of the build directory. LIBS: its outside
# libraries. HOST: all folders below it; what it uses of them it finds in the program that loads it, so that there is one
# of each. That is why these programs carry them whole, and show their names.
function(berth_module folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HOST")
  get_target_property(type berth_${folder} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  set(target berth_${folder}_module)
  set_target_properties(berth_${folder} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(berth_${folder} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  add_library(${target} MODULE "${CMAKE_SOURCE_DIR}/src/${folder}/module.cc")
  target_link_libraries(${target} PRIVATE berth_flags "$<TARGET_FILE:berth_${folder}>" ${arg_LIBS})
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:berth_${folder},INTERFACE_COMPILE_DEFINITIONS>)
  add_dependencies(${target} berth_${folder})
  set(whole "")
  foreach(below IN LISTS arg_HOST)
    string(APPEND whole ",$<TARGET_FILE:berth_${below}>")
  endforeach()
  # As RPATH, not RUNPATH: that would not count where AddressSanitizer calls dlopen() for the program.
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME berth_${folder} LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}"
    BERTH_HOST "LINKER:--export-dynamic;LINKER:--whole-archive${whole},--no-whole-archive;LINKER:--disable-new-dtags;LINKER:-rpath,${CMAKE_BINARY_DIR}")
  # What is linked with all folders need not wait for its outside libraries either.
  get_property(libraries GLOBAL PROPERTY BERTH_LIBRARIES)
  list(REMOVE_ITEM libraries berth_${folder})
  set_property(GLOBAL PROPERTY BERTH_LIBRARIES ${libraries})
endfunction()

# Reading the standard library's headers, fmt's and, in tests, googletest's takes longer than compiling most files. They
# are compiled once for all sources and once for all tests; folders with PRECOMPILE have their own.
set(BERTH_PRECOMPILED_sources <algorithm> <cmath> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <unordered_map> <utility> <vector> <fmt/format.h>)
set(BERTH_PRECOMPILED_tests ${BERTH_PRECOMPILED_sources} <gmock/gmock.h> <gtest/gtest.h>)

# berth_use_precompiled(<target> sources|tests [header]): the shared one, or one of its own of a header that is slow to read.
function(berth_use_precompiled target kind)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # Each source that includes such a header instantiates what it leaves pending, five seconds of templates for
    # libtorch's, whatever the source uses of it: so several sources are compiled as one.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
    return()
  endif()
  if(NOT TARGET berth_precompiled_${kind})
    file(WRITE "${CMAKE_BINARY_DIR}/precompiled/${kind}.cc" "")
    add_library(berth_precompiled_${kind} OBJECT "${CMAKE_BINARY_DIR}/precompiled/${kind}.cc")
    target_link_libraries(berth_precompiled_${kind} PRIVATE berth_flags fmt::fmt)
    if(kind STREQUAL "tests")
      target_link_libraries(berth_precompiled_tests PRIVATE GTest::gmock GTest::gtest_main)
    endif()
    target_precompile_headers(berth_precompiled_${kind} PRIVATE ${BERTH_PRECOMPILED_${kind}})
    target_compile_options(berth_precompiled_${kind} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  target_precompile_headers(${target} REUSE_FROM berth_precompiled_${kind})
endfunction()

# berth_file_needs(<folder> <file> <name>): compiles src/<folder>/<file> only where the outside library <name> is here, and
# tells the folder, its tests and all above it by BERTH_HAS_<NAME>=0 or 1. It follows the folder's line.
function(berth_file_needs folder file name)
  string(TOUPPER "BERTH_HAS_${name}" definition)
  get_target_property(type berth_${folder} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")  # the folder itself is left out
    target_compile_definitions(berth_${folder} INTERFACE ${definition}=0)
  elseif(TARGET berth_${name})
    target_link_libraries(berth_${folder} PRIVATE berth_${name})
    target_compile_definitions(berth_${folder} PUBLIC ${definition}=1)
  else()
    message(STATUS "src/${folder}/${file} is left out: it needs ${name}")
    set_source_files_properties("${CMAKE_SOURCE_DIR}/src/${folder}/${file}" PROPERTIES HEADER_FILE_ONLY ON)
    target_compile_definitions(berth_${folder} PUBLIC ${definition}=0)
  endif()
endfunction()

# berth_test(<name> <binary> [SHARDS n]): links googletest into a test binary and hands it to ctest as one entry, or as n,
# which divide its cases. Not an entry per case: starting a sanitized process costs more than most cases. Each entry writes
# build/<preset>/results/<entry>.xml, from which ./dev test counts the cases.
function(berth_test name binary)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SHARDS" "")
  target_link_libraries(${binary} PRIVATE GTest::gmock GTest::gtest_main)
  target_compile_definitions(${binary} PRIVATE
    BERTH_SOURCE_DIR="${CMAKE_SOURCE_DIR}" BERTH_SHARED_DIR="${BERTH_SHARED_DIR}")
  if(NOT BERTH_SANITIZE)
    # Of a Device{...} that a test writes down, GCC 12 takes the string in an empty optional for one that is used.
    target_compile_options(${binary} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(entry ${name})
    if(arg_SHARDS GREATER 1)
      set(entry ${name}_${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${entry} COMMAND ${binary} WORKING_DIRECTORY "${CMAKE_BINARY_DIR}")
    set(environment GTEST_BRIEF=1 "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${entry}.xml"
      GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index} UBSAN_OPTIONS=print_stacktrace=1)
    set_tests_properties(${entry} PROPERTIES TIMEOUT 900 ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# berth_program(<name> <folder>): the program, from src/<folder>/main.cc, at the top of the build directory.
function(berth_program name folder)
  file(GLOB main CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/main.cc")
  if(main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE berth_${folder})
    # With its modules beside it, it may be copied elsewhere.
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}" BUILD_RPATH "$ORIGIN")
  endif()
endfunction()
