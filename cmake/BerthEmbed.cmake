# berth_embed(<folder> <namespace-scope name> <files...>): text files as part of berth_<folder>, so that the program needs
# nothing beside it. Makes a source that defines `const std::vector<EmbeddedFile>& <name>()` of src/base/embedded.h, with
# the files in the order of their names. A changed file makes CMake run again.
function(berth_embed folder name)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(source "${CMAKE_BINARY_DIR}/embedded/${folder}_${name}.cc")
  string(CONCAT text
    "#include \"base/embedded.h\"\n\nnamespace berth {\n\n"
    "const std::vector<EmbeddedFile>& ${name}() {\n  static const std::vector<EmbeddedFile> files = {\n")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file STEM LAST_ONLY stem)
    file(READ "${file}" content)
    string(APPEND text "      {\"${stem}\", R\"embedded(${content})embedded\"},\n")
  endforeach()
  string(APPEND text "  };\n  return files;\n}\n\n}  // namespace berth\n")
  set(present "")
  if(EXISTS "${source}")
    file(READ "${source}" present)
  endif()
  if(NOT present STREQUAL text)
    file(WRITE "${source}" "${text}")
  endif()
  target_sources(berth_${folder} PRIVATE "${source}")
endfunction()
