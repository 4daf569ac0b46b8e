// SPDX-License-Identifier: Apache-2.0
#include "tools/chat_server_command_line.h"

#include "tools/option_checks.h"

namespace hearth::tools {
namespace {

constexpr size_t kMostSessions = 1024;
constexpr size_t kMostQueued = 100'000;
constexpr size_t kMostConnections = 100'000;
constexpr size_t kMostTokens = size_t{1} << 24;
constexpr uint32_t kMostThreads = 1024;

}  // namespace

CLI::App* addChatServerCommand(CLI::App* app, ChatServerOptions* options) {
  CLI::App* const server = app->add_subcommand(
      "chat-server", "Serve language models over HTTP, as OpenAI's interface does");
  server
      ->add_option("MODEL", options->models,
                   "The .litertlm files of language models; NAME=FILE gives one another name")
      ->required();
  server
      ->add_option("--listen", options->listen,
                   "Where to listen: HOST:PORT, or unix:PATH (127.0.0.1:8080)")
      ->type_name("ADDRESS");
  server->add_flag("--public", options->isPublic,
                   "Listen at an address that other machines can reach, too");
  server
      ->add_option("--api-key-file", options->apiKeyFile,
                   "A file with the key that requests have to say")
      ->type_name("FILE");
  server->add_option("--sessions", options->sessions, "Conversations to keep at a time (4)")
      ->check(CLI::Range(size_t{1}, kMostSessions))
      ->type_name("N");
  server
      ->add_option("--queue", options->queue,
                   "Requests that may wait for a session; more are refused (64)")
      ->check(CLI::Range(size_t{0}, kMostQueued))
      ->type_name("N");
  server
      ->add_option("--memory", options->memory,
                   "Private memory above which conversations are dropped (no limit); K, M and G "
                   "are understood")
      ->transform(byteCount("--memory"));
  server->add_option("--connections", options->connections, "Connections at a time (1024)")
      ->check(CLI::Range(size_t{1}, kMostConnections))
      ->type_name("N");
  server
      ->add_option("--request-size", options->requestBytes,
                   "The largest request (4M); K, M and G are understood")
      ->transform(byteCount("--request-size"));
  server
      ->add_option("--template", options->chatTemplate,
                   "A file with the chat template (each model's own)")
      ->type_name("FILE");
  server
      ->add_option("--context", options->context,
                   "The most tokens of prompt and answers (the model's)")
      ->check(CLI::Range(size_t{1}, kMostTokens))
      ->type_name("N");
  server
      ->add_option("--keep", options->keep,
                   "When the context is full, go on without the oldest messages, or tokens after "
                   "the first N (conversations that are too long are refused)")
      ->check(CLI::Range(size_t{0}, kMostTokens))
      ->type_name("N");
  server
      ->add_option("--prefix-store", options->prefixStore,
                   "Whether system messages are kept for later starts and other processes: marked "
                   "or off (marked)")
      ->check(CLI::IsMember({"off", "marked"}))
      ->type_name("WHAT");
  server
      ->add_option("--threads", options->threads,
                   "Threads to use (HEARTH_THREADS, else the device's choice)")
      ->check(CLI::Range(0u, kMostThreads))
      ->type_name("N");
  server
      ->add_option("--timeout", options->timeoutSeconds,
                   "The most time for a request, from its arrival on (no limit)")
      ->check(positiveSeconds());
  return server;
}

}  // namespace hearth::tools
