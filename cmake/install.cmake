# The headers, the package for find_package(cai) and the one for pkg-config.

include(CMakePackageConfigHelpers)
set(cai_package_dir share/cmake/cai)

install(FILES cai.h cai_stream.h cai_emm.h ext/cai_array_struct.h ext/cai_dlpack.h
        ext/cai_ipc.h ext/cai_python.h LICENSE DESTINATION include/cai)
install(TARGETS cai EXPORT caiTargets)
install(EXPORT caiTargets NAMESPACE cai:: DESTINATION ${cai_package_dir} FILE caiConfig.cmake)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/caiConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/caiConfigVersion.cmake" DESTINATION ${cai_package_dir})
configure_file(cmake/cai.pc.in cai.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cai.pc" DESTINATION share/pkgconfig)
