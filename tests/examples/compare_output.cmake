# What a program prints must be what the documentation shows. PROGRAM, SHOWN

execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE status OUTPUT_VARIABLE printed)
if(status)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
file(READ "${SHOWN}" shown)
if(NOT printed STREQUAL shown)
  message(FATAL_ERROR "what ${PROGRAM} prints is not ${SHOWN}")
endif()
