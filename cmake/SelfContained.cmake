# SPDX-License-Identifier: Apache-2.0
# With HEARTH_SELF_CONTAINED our libraries need nothing of the system but glibc: other libraries, that of
# C++ among them, are linked from their archives. Included before anything looks for one of them.
#
# XNNPACK and cpuinfo have no archives in Debian, and libseccomp's licence asks for a library that can be
# exchanged: tools/dev/wheels.py copies cpuinfo and libseccomp. It also makes what HEARTH_WHEEL_PARTS has.

# Of the C++ library each of ours has a copy of its own, which others must not find.
add_link_options(-static-libstdc++ -static-libgcc
                 -Wl,--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a)

find_library(SQLite3_LIBRARY libsqlite3.a REQUIRED)

# Digests, which are all that we use of it, need none of the libraries that the whole archive needs.
set(OPENSSL_USE_STATIC_LIBS ON)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
set_property(TARGET OpenSSL::Crypto PROPERTY INTERFACE_LINK_LIBRARIES)

# Debian's archives of Cap'n Proto are for programs only. Its CMake package looks at these variables.
foreach(name IN ITEMS capnp kj)
  find_library(CapnProto_${name}_IMPORTED_LOCATION lib${name}.a
               PATHS ${HEARTH_WHEEL_PARTS} REQUIRED NO_DEFAULT_PATH)
endforeach()

# Neither has an archive, but both are headers as well.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
add_library(hearth_spdlog_headers INTERFACE)
target_compile_definitions(hearth_spdlog_headers INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(hearth_spdlog_headers INTERFACE fmt::fmt-header-only)
set(HEARTH_SPDLOG hearth_spdlog_headers)
