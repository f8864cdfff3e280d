# Compiler, warnings, sanitizers, ccache and mold: what every target of the project shares, as the target berth_flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(berth_flags INTERFACE)
target_include_directories(berth_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(berth_flags INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion
  # A score must be the same bits on every machine: where the processor has a fused multiply-add, GCC would use it by
  # itself, and round once where the source says twice.
  -ffp-contract=off
  # CHECK prints __FILE__: from the root of the repository, wherever that lies, with ccache's relative paths too.
  "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=" -fmacro-prefix-map=../../=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bugs 105651 and 105329: operator+ and moves of std::string warn of memcpy that overlaps or is too long, under
  # optimisation; of what comes from a precompiled header more often.
  target_compile_options(berth_flags INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
    -Wno-stringop-overread)
endif()

if(BERTH_SANITIZE)
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Checks of every access, two fifths of what GCC takes; AddressSanitizer sees most of what they see, and the fuzzers
    # keep them.
    list(APPEND sanitizers -fno-sanitize=null,alignment,vptr,object-size)
  endif()
  # The instrumented code confuses GCC's flow analysis; the release build, without it, keeps this warning.
  target_compile_options(berth_flags INTERFACE
    ${sanitizers} $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_definitions(berth_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(berth_flags INTERFACE ${sanitizers})
endif()

if(BERTH_FUZZ)
  # libFuzzer sees where an input leads by marks in every branch, and what a comparison wanted. Its main function is
  # linked by tests/fuzz alone.
  target_compile_options(berth_flags INTERFACE -fsanitize=fuzzer-no-link "SHELL:-Xclang -fno-pch-timestamp")
endif()

find_package(Threads REQUIRED)
target_link_libraries(berth_flags INTERFACE Threads::Threads)

find_program(BERTH_MOLD mold)
if(BERTH_MOLD)
  target_link_options(berth_flags INTERFACE -fuse-ld=mold)
endif()

find_program(BERTH_CCACHE ccache)
if(BERTH_CCACHE)
  # Relative paths and no working directory in the hash: build directories of equal depth share their hits.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${BERTH_CCACHE}")
endif()
