# What `cmake --install` puts where, and how other projects find it. Everything may be moved afterwards.

include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gemini)

install(TARGETS gemini EXPORT gemini-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/gemini.h include/gemini_version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT gemini-targets NAMESPACE gemini:: DESTINATION ${_package_dir})

configure_package_config_file(cmake/geminiConfig.cmake.in ${PROJECT_BINARY_DIR}/geminiConfig.cmake
                              INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/geminiConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion) # until 1.0 a minor version may break
install(FILES ${PROJECT_BINARY_DIR}/geminiConfig.cmake ${PROJECT_BINARY_DIR}/geminiConfigVersion.cmake
        DESTINATION ${_package_dir})

# For Make and the like: mpicc prog.c $(pkg-config --cflags --libs gemini). Static libraries go by CMake.
if(BUILD_SHARED_LIBS)
  foreach(_dir prefix:${CMAKE_INSTALL_PREFIX} include:${CMAKE_INSTALL_FULL_INCLUDEDIR}
               lib:${CMAKE_INSTALL_FULL_LIBDIR})
    string(REGEX MATCH "^([a-z]+):(.*)$" _ "${_dir}")
    set(_base ${CMAKE_INSTALL_PREFIX})
    if(CMAKE_MATCH_1 STREQUAL "prefix")
      set(_base ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
    endif()
    file(RELATIVE_PATH GEMINI_PC_${CMAKE_MATCH_1} ${_base} ${CMAKE_MATCH_2})
  endforeach()
  string(REGEX REPLACE "/$" "" GEMINI_PC_prefix "${GEMINI_PC_prefix}")
  configure_file(cmake/gemini.pc.in ${PROJECT_BINARY_DIR}/gemini.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/gemini.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                      -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
endif()
