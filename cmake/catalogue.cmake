# Shows what cai_inspect says of the catalogue of dictionaries. PROGRAM, INPUT

execute_process(COMMAND "${PROGRAM}" --table "${INPUT}" RESULT_VARIABLE status)
if(NOT status MATCHES "^[01]$")
  message(FATAL_ERROR "${PROGRAM} ended with ${status}")
endif()
