# SPDX-License-Identifier: Apache-2.0
# With HEARTH_SELF_CONTAINED our libraries need nothing of the system but glibc: other libraries, that of
# C++ among them, are linked from their archives. Included before anything looks for one of them.
#
# XNNPACK and cpuinfo have no archives in Debian, and libseccomp's licence asks for a library that can be
# exchanged: tools/dev/wheels.py copies cpuinfo and libseccomp. It also makes what HEARTH_WHEEL_PARTS has.

# Of the C++ library each of ours has a copy of its own, which others must not find.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections
                 -Wl,--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a)

# What the archives of the C++ library and the unwinder ask of a newer glibc than ours have to run with.
# Named at once, since those archives come last.
add_library(hearth_older_glibc STATIC ${CMAKE_CURRENT_SOURCE_DIR}/src/base/older_glibc.c)
set_target_properties(hearth_older_glibc PROPERTIES C_VISIBILITY_PRESET hidden)
link_libraries($<BUILD_INTERFACE:hearth_older_glibc>)
add_link_options(-Wl,-u,arc4random -Wl,-u,_dl_find_object)

find_library(SQLite3_LIBRARY libsqlite3.a REQUIRED)

# Debian's archives of Cap'n Proto are for programs only. Its CMake package looks at these variables.
foreach(name IN ITEMS capnp kj)
  find_library(CapnProto_${name}_IMPORTED_LOCATION lib${name}.a
               PATHS ${HEARTH_WHEEL_PARTS} REQUIRED NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
endforeach()
