# SPDX-License-Identifier: Apache-2.0
# What the transport and the driver host are made of, and clients use too.
hearth_library(hearth_ipc_parts
  SOURCES fair_share.cc mailbox_client.cc mailbox_end.cc mailbox_page.cc mailbox_server.cc
  DEPS hearth_base)

hearth_test(ipc_parts_test
  SOURCES fair_share_test.cc mailbox_test.cc
  DEPS hearth_ipc_parts)
hearth_fuzzer(mailbox_fuzz SOURCES mailbox_fuzz.cc DEPS hearth_ipc_parts)

# A mailbox beside a bare futex and sockets.
add_executable(mailbox_bench ${PROJECT_SOURCE_DIR}/bench/mailbox_bench.cc)
hearth_options(mailbox_bench)
target_link_libraries(mailbox_bench PRIVATE hearth_ipc_parts)
