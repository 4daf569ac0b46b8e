# SPDX-License-Identifier: Apache-2.0
# What a driver that is built outside this tree needs: the headers of the driver interface, a static
# library, the CMake package `hearth_driver` with the target hearth::driver, a file for pkg-config, the
# driver suite as a program, and a project to copy.
include(CMakePackageConfigHelpers)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# All objects that such a driver may refer to, in one archive. The threads stay in their shared library, of
# which a process has one.
set(parts hearth_base hearth_memory hearth_graph hearth_ops hearth_hal)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(hearth_driver STATIC ${objects})
set_target_properties(hearth_driver PROPERTIES LINKER_LANGUAGE CXX)

set(headers_script ${CMAKE_CURRENT_LIST_DIR}/driver_headers.py)
execute_process(COMMAND ${Python3_EXECUTABLE} ${headers_script} ${PROJECT_SOURCE_DIR}/src
                OUTPUT_VARIABLE headers OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" headers "${headers}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers_script})
set(driver_include ${CMAKE_INSTALL_INCLUDEDIR}/hearth-driver)
foreach(header IN LISTS headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${header})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${driver_include}/${folder})
endforeach()
install(TARGETS hearth_driver ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

file(STRINGS ${PROJECT_SOURCE_DIR}/src/hal/device.h version REGEX "kApiVersion = [0-9]+")
string(REGEX REPLACE ".*kApiVersion = ([0-9]+).*" "\\1" HEARTH_DRIVER_API_VERSION "${version}")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hearth_driver)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hearth_driverConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/generated/hearth_driverConfig.cmake
                              INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_LIBDIR HEARTH_INSTALL_PRIVATE_LIBDIR driver_include
                                        CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/hearth_driverConfigVersion.cmake
                                 COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/hearth_driverConfig.cmake
              ${CMAKE_BINARY_DIR}/generated/hearth_driverConfigVersion.cmake
        DESTINATION ${package})
configure_file(${CMAKE_CURRENT_LIST_DIR}/hearth_driver.pc.in ${CMAKE_BINARY_DIR}/generated/hearth_driver.pc
               @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/hearth_driver.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(skeleton ${PROJECT_SOURCE_DIR}/src/drivers/null)
install(FILES ${skeleton}/project/CMakeLists.txt ${skeleton}/README.md ${skeleton}/driver_entry.cc
              ${skeleton}/manifest.json.in ${skeleton}/null_device.cc ${skeleton}/null_device.h
        DESTINATION ${CMAKE_INSTALL_DATADIR}/hearth/driver-skeleton)

set_target_properties(hearth_driver_suite PROPERTIES INSTALL_RPATH $ORIGIN/${hearth_bin_to_private})
install(TARGETS hearth_driver_suite RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
