# The headers, the simulated CUDA as sources, the package for find_package(cai) and the one for pkg-config.

include(CMakePackageConfigHelpers)
set(cai_package_dir share/cmake/cai)

install(FILES cai.h cai_stream.h cai_emm.h ext/cai_array_struct.h ext/cai_dlpack.h
        ext/cai_access.h ext/cai_ipc.h ext/cai_layout.h ext/cai_manager.h ext/cai_move.h ext/cai_place.h ext/cai_python.h
        ext/cai_mpi.h ext/cai_mpi_type.h ext/cai_python_dlpack.h ext/cai_storage.h ext/cai_transfer.h LICENSE
        DESTINATION include/cai)
install(FILES sim/cai_sim.h sim/cai_sim.c sim/cai_check.h sim/cai_check.c sim/cai_timeline.h sim/cai_timeline.c
        sim/README.md LICENSE DESTINATION share/cai/sim)
install(TARGETS cai EXPORT caiTargets)
install(EXPORT caiTargets NAMESPACE cai:: DESTINATION ${cai_package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/caiConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/caiConfig.cmake "${PROJECT_BINARY_DIR}/caiConfigVersion.cmake" DESTINATION ${cai_package_dir})
configure_file(cmake/cai.pc.in cai.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cai.pc" DESTINATION share/pkgconfig)
