# berth_library(), and the program, the tests and the benchmarks that are made of libraries.

# berth_library(<folder> [DEPS folders] [EXPORTS libs] [LIBS libs] [TEST_DEPS folders] [NEEDS lib])
# makes berth_<folder> of src/<folder>/*.cc and, where there are *_test.cc, the test binary berth_<folder>_test.
# A folder without sources (yet) is an interface library, so that the lines above it need not know.
function(berth_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NEEDS" "DEPS;EXPORTS;LIBS;TEST_DEPS")
  set(target berth_${folder})
  set(dir "${CMAKE_SOURCE_DIR}/src/${folder}")
  file(GLOB sources CONFIGURE_DEPENDS "${dir}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")
  if(arg_NEEDS AND NOT TARGET berth_${arg_NEEDS})
    message(STATUS "${folder}: left out, ${arg_NEEDS} is not here")
    set(sources "")
    set(tests "")
  endif()

  list(TRANSFORM arg_DEPS PREPEND berth_)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(public PUBLIC)
    set(private PRIVATE)
  else()
    add_library(${target} INTERFACE)
    set(public INTERFACE)
    set(private INTERFACE)
  endif()
  target_link_libraries(${target} ${public} berth_flags ${arg_DEPS} ${arg_EXPORTS} ${private} ${arg_LIBS})
  if(arg_NEEDS AND sources)
    target_link_libraries(${target} PRIVATE berth_${arg_NEEDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY BERTH_LIBRARIES ${target})

  if(BERTH_TESTS AND tests)
    list(TRANSFORM arg_TEST_DEPS PREPEND berth_)
    add_executable(${target}_test ${tests})
    target_link_libraries(${target}_test PRIVATE ${target} ${arg_LIBS} ${arg_TEST_DEPS})
    berth_test(${folder} ${target}_test)
  endif()
endfunction()

# Links googletest into a test binary and hands it to ctest as one entry: a process per binary, not per case, because
# starting a sanitized process costs more than most cases. Each entry writes build/<preset>/results/<name>.xml, from
# which ./dev test counts the cases.
function(berth_test name binary)
  target_link_libraries(${binary} PRIVATE GTest::gmock GTest::gtest_main)
  target_compile_definitions(${binary} PRIVATE
    BERTH_SOURCE_DIR="${CMAKE_SOURCE_DIR}" BERTH_SHARED_DIR="${BERTH_SHARED_DIR}")
  add_test(NAME ${name} COMMAND ${binary} WORKING_DIRECTORY "${CMAKE_BINARY_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT
    "GTEST_BRIEF=1;GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${name}.xml;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()

# berth_program(<name> <folder>): the program, from src/<folder>/main.cc, at the top of the build directory.
function(berth_program name folder)
  file(GLOB main CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/main.cc")
  if(main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE berth_${folder})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  endif()
endfunction()

# berth_tests(): the tests that are no folder's own: tests/*_test.cc and tests/*/*_test.cc, linked with everything.
function(berth_tests)
  if(NOT BERTH_TESTS)
    return()
  endif()
  add_subdirectory("${CMAKE_SOURCE_DIR}/tests")
endfunction()

# berth_bench(): one google-benchmark binary; not part of `all`, so that who only wants the program does not wait for it.
function(berth_bench)
  if(NOT BERTH_BENCH)
    return()
  endif()
  add_subdirectory("${CMAKE_SOURCE_DIR}/bench")
endfunction()
