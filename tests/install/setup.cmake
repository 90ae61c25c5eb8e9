# Installs BUILD, moves the prefix to WORK/moved, and looks at what lies there.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed --config "${CONFIG}"
                COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${WORK}/installed ${WORK}/moved)

# Nothing points back at the build, the sources or the first prefix.
file(GLOB_RECURSE _files ${WORK}/moved/*.cmake ${WORK}/moved/*.pc)
foreach(_file IN LISTS _files)
  file(READ ${_file} _text)
  foreach(_path ${WORK}/installed ${BUILD}/)
    string(FIND "${_text}" ${_path} _at)
    if(NOT _at EQUAL -1)
      message(FATAL_ERROR "${_file} names ${_path}")
    endif()
  endforeach()
endforeach()
file(GLOB_RECURSE _headers RELATIVE ${WORK}/moved ${WORK}/moved/*.h ${WORK}/moved/*.hpp)
if(NOT _headers STREQUAL "include/gemini.h;include/gemini_version.h")
  message(FATAL_ERROR "the installed headers are '${_headers}'")
endif()
