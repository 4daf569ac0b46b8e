# SPDX-License-Identifier: Apache-2.0
# The few functions by which every folder declares its targets, so that warnings, sanitizers and
# include paths are the same everywhere.

# For code that waits for the compiler longer than it runs.
set(HEARTH_QUICKLY_COMPILED $<$<CONFIG:Release>:-O1>)

# All programs that ctest runs, and what they load: less than everything, which has the Python package,
# benchmarks and examples, too.
if(HEARTH_BUILD_TESTS)
  add_custom_target(hearth_tests)
endif()

# hearth_precompiled(NAME [HEADERS name...] [DEPS target...] [OPTIONS option...]): an object library
# whose precompiled header holds the standard headers that most files include, and HEADERS: reading
# them is half of a compilation. Who uses it has to have the same optimisation level, -O2 and -O3
# being the same here. Every file still includes what it uses: clang-tidy reads it without this.
function(hearth_precompiled name)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "HEADERS;DEPS;OPTIONS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  hearth_sanitize(${name})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  set(headers algorithm array atomic chrono cmath cstdint cstring expected filesystem functional map
      memory mutex optional set span string string_view thread utility vector ${arg_HEADERS})
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

# Takes the precompiled header that hearth_precompiled(FROM) declared. Clang's headers name the folder
# that they were made in: the compiler cache would hand them to another checkout, which then asks for
# that folder. So Clang, with which only the fuzzers are built, does without.
function(hearth_use_precompiled target from)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
  # Programs, too, have to be compiled as the header is.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  # Asked for by ccache.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endfunction()

# The warnings, include paths and sanitizers of a target.
function(hearth_options target)
  # Clang does not know GCC's hints to its vectoriser.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers
                                           $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas>)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  hearth_sanitize(${target})
endfunction()

function(hearth_sanitize target)
  if(HEARTH_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEARTH_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${HEARTH_SANITIZE})
    if(HEARTH_BUILD_FUZZERS)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
      # For C programs Clang leaves out the part of the sanitizers' runtime that our libraries need.
      set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
  endif()
endfunction()

# hearth_batches(TARGET [ALONE name...]): with HEARTH_UNITY_BUILD, the C++ sources of a folder are compiled
# up to eight together: the standard headers cost a third of a second for each compilation, precompiled or
# not, and ours as much again. So sources of one folder have no two things of the same name in their
# anonymous namespaces, or one of them is compiled by itself: it is named behind ALONE, or its folder is.
# So are sources that take as long as a batch, and those that are known by the names of their object files.
# A source that has options of its own by then is compiled by itself in any case.
set(HEARTH_BATCH_SIZE 8)
function(hearth_batches target)
  if(NOT HEARTH_UNITY_BUILD)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  get_target_property(all ${target} SOURCES)
  set(folders "")
  foreach(source IN LISTS all)
    get_filename_component(folder ${source} DIRECTORY)
    if(folder STREQUAL "")
      set(folder .)
    endif()
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(source MATCHES "\\.cc$" AND NOT options AND NOT source IN_LIST arg_ALONE
       AND NOT folder IN_LIST arg_ALONE)
      string(MAKE_C_IDENTIFIER ${target}/${folder} folder)
      list(APPEND folders ${folder})
      list(APPEND sources_${folder} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  # GCC takes a class in an included file for one that other sources see, too: it should have no member
  # whose type is in an anonymous namespace.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(begin "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"\n")
  endif()
  foreach(folder IN LISTS folders)
    list(LENGTH sources_${folder} count)
    if(count EQUAL 1)
      continue()
    endif()
    list(REMOVE_ITEM all ${sources_${folder}})
    # Batches of a folder are of the same size, give or take one.
    math(EXPR batches "(${count} + ${HEARTH_BATCH_SIZE} - 1) / ${HEARTH_BATCH_SIZE}")
    set(number 0)
    foreach(source IN LISTS sources_${folder})
      math(EXPR batch "${number} * ${batches} / ${count}")
      # As headers are included: the text is the same in every checkout, for the compiler cache.
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND text_${folder}_${batch} "#include \"${path}\"\n")
      math(EXPR number "${number} + 1")
    endforeach()
    math(EXPR last "${batches} - 1")
    foreach(batch RANGE ${last})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${folder}_${batch}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "${begin}${text_${folder}_${batch}}")
      list(APPEND all ${file})
    endforeach()
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${all})
endfunction()

# hearth_library(NAME SOURCES file... [DEPS target...] [ALONE name...]): a static library of one layer. The
# variable HEARTH_PRECOMPILED names the precompiled header. ALONE: see hearth_batches().
function(hearth_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;ALONE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  hearth_options(${name})
  hearth_use_precompiled(${name} ${HEARTH_PRECOMPILED})
  hearth_batches(${name} ALONE ${arg_ALONE})
  target_link_libraries(${name} PUBLIC ${arg_DEPS})
endfunction()

# hearth_test(NAME SOURCES file... [DEPS target...]): one GoogleTest program, run by ctest.
function(hearth_test name)
  if(NOT HEARTH_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  hearth_options(${name})
  target_compile_options(${name} PRIVATE ${HEARTH_QUICKLY_COMPILED})
  hearth_use_precompiled(${name} hearth_precompiled_tests)
  # Two thirds of a clean build, of which emulation runs a few: those are built by their names.
  if(CMAKE_CROSSCOMPILING)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  add_dependencies(hearth_tests ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# hearth_test_paths(SOURCE NAME="PATH"...): macros for one source of a test, with paths of this checkout or its
# build. Not for the target: the compiler cache would share none of its objects between checkouts.
function(hearth_test_paths source)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS ${ARGN})
endfunction()

# hearth_hosted_test(NAME [EXCEPT pattern...]): runs a test program once more, with both built-in
# devices behind hosts that the runtime spawns; without the cases that cannot apply there.
function(hearth_hosted_test name)
  if(NOT HEARTH_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "EXCEPT" ${ARGN})
  list(JOIN arg_EXCEPT ":" except)
  add_test(NAME ${name}_hosted COMMAND ${name} --gtest_filter=*-${except})
  set_tests_properties(${name}_hosted PROPERTIES TIMEOUT 600
    ENVIRONMENT "HEARTH_DRIVER_HOSTS=hearth-cpu=spawn,nnapi-reference=spawn")
  # The runtime finds it beside the test program.
  add_dependencies(${name} hearth_tool)
endfunction()

# hearth_large_pages_test(NAME [FILTER pattern]): runs a test program once more with pages of 64 KiB
# (src/memory/testing/faked_pages.cc), all cases or those of a GoogleTest filter. Not with sanitizers,
# which want to be the first library.
function(hearth_large_pages_test name)
  if(NOT HEARTH_BUILD_TESTS OR HEARTH_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(arg "" "FILTER" "" ${ARGN})
  if(NOT arg_FILTER)
    set(arg_FILTER *)
  endif()
  add_test(NAME ${name}_large_pages COMMAND ${name} --gtest_filter=${arg_FILTER})
  set_tests_properties(${name}_large_pages PROPERTIES TIMEOUT 600
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hearth_faked_pages>")
  add_dependencies(${name} hearth_faked_pages)
endfunction()

# hearth_fuzzer(NAME SOURCES file... [DEPS target...]): a libFuzzer program (fuzz preset only), also
# built by the target hearth_fuzzers.
function(hearth_fuzzer name)
  if(NOT HEARTH_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  hearth_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET hearth_fuzzers)
    add_custom_target(hearth_fuzzers)
  endif()
  add_dependencies(hearth_fuzzers ${name})
endfunction()
