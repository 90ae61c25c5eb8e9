# Builds SOURCE by MPICC with what pkg-config says about the moved prefix, and runs it.
set(ENV{PKG_CONFIG_PATH} ${LIBDIR}/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs gemini OUTPUT_VARIABLE _flags
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(_flags UNIX_COMMAND "${_flags}")
execute_process(COMMAND ${MPICC} -std=c99 -Wall -Wextra -Wpedantic -Werror ${SOURCE} -o ${WORK}/by_pkg_config
                        ${_flags} COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} ${LIBDIR}:$ENV{LD_LIBRARY_PATH})
execute_process(COMMAND ${RUN} ${WORK}/by_pkg_config COMMAND_ERROR_IS_FATAL ANY)
