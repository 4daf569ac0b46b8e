# SPDX-License-Identifier: Apache-2.0
# Builds for 64-bit ARM on another machine, with the compiler and the libraries that
# tools/dev/cross_root.sh puts into a folder of the cache folder. Generators that run during the build
# are programs of this machine.
set(hearth_cross_root $ENV{HEARTH_CACHE_DIR}/arm64)
if(NOT EXISTS ${hearth_cross_root}/stamp)
  message(FATAL_ERROR "${hearth_cross_root} has no ARM64 compiler; \"./dev build arm64\" fetches it.")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${hearth_cross_root}/tools/usr/bin/aarch64-linux-gnu-gcc-14)
set(CMAKE_CXX_COMPILER ${hearth_cross_root}/tools/usr/bin/aarch64-linux-gnu-g++-14)
set(CMAKE_SYSROOT ${hearth_cross_root}/sysroot)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
