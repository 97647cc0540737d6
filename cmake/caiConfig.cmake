# cai::cai is the headers. cai::sim is the simulated CUDA: its sources are compiled by the target that links it.

include("${CMAKE_CURRENT_LIST_DIR}/caiTargets.cmake")

get_filename_component(cai_sim_folder "${CMAKE_CURRENT_LIST_DIR}/../../cai/sim" ABSOLUTE)
find_package(Threads QUIET)
if(Threads_FOUND AND NOT TARGET cai::sim)
  add_library(cai::sim INTERFACE IMPORTED)
  set_target_properties(cai::sim PROPERTIES
    INTERFACE_SOURCES "${cai_sim_folder}/cai_sim.c;${cai_sim_folder}/cai_check.c;${cai_sim_folder}/cai_timeline.c"
    INTERFACE_INCLUDE_DIRECTORIES "${cai_sim_folder}"
    INTERFACE_LINK_LIBRARIES "cai::cai;Threads::Threads")
endif()
unset(cai_sim_folder)
