# cmake -DPROGRAM=... -DPAGE=... -P compare_page.cmake: the page is what the program prints.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${PAGE} page)
if(NOT printed STREQUAL page)
  message(FATAL_ERROR "${PAGE} is out of date; write it anew: ${PROGRAM} > ${PAGE}")
endif()
