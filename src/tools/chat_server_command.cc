// SPDX-License-Identifier: Apache-2.0
// `hearth chat-server`.
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <set>
#include <utility>

#include "base/process_memory.h"
#include "llm_server/chat_service.h"
#include "llm_server/http_server.h"
#include "llm_server/listen_address.h"
#include "llm_server/served_model.h"
#include "tools/chat_server_options.h"
#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"

namespace hearth::tools {
namespace {

using llm_server::ServedModel;

// Descriptors besides those of connections: of models, the store, standard streams.
constexpr rlim_t kOtherDescriptors = 256;

// Descriptors of many clients; the standard limit is for programs that use select().
Outcome<void> allowConnections(size_t connections) {
  const rlim_t needed = connections + kOtherDescriptors;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  if (limit.rlim_max < needed)
    return usage("{} connections need {} descriptors; this process may have {}.", connections,
                 needed, limit.rlim_max);
  limit.rlim_cur = needed;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
  return {};
}

Outcome<std::string> apiKey(const ChatServerOptions& options) {
  if (options.apiKeyFile.empty()) return std::string();
  HEARTH_ASSIGN(std::string key, textOfArgument("@" + options.apiKeyFile));
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  if (key.empty() || key.contains('\n'))
    return usage("{} does not hold one line with an API key.", options.apiKeyFile);
  return key;
}

Outcome<std::vector<std::shared_ptr<const ServedModel>>> openModels(
    const ChatServerOptions& options) {
  llm::OpenModelOptions open;
  open.compile = compileOptions(options.store, options.threads);
  if (!options.chatTemplate.empty()) {
    HEARTH_ASSIGN(open.chatTemplate, textOfArgument("@" + options.chatTemplate));
  }
  open.context = options.context;
  open.hasPrefixes = options.prefixStore != "off";
  std::vector<std::shared_ptr<const ServedModel>> models;
  std::set<std::string> names;
  for (const std::string& argument : options.models) {
    HEARTH_ASSIGN(auto model, ServedModel::open(argument, open));
    if (!names.insert(model->name).second)
      return usage("Two models have the name {}; NAME=FILE gives a model another one.",
                   model->name);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

Outcome<void> chatServerCommand(const ChatServerOptions& options) {
  HEARTH_ASSIGN(const auto address, llm_server::ListenAddress::parse(options.listen));
  if (!address.isLocal() && !options.isPublic)
    return usage("{} lets other machines connect; --public allows that.", options.listen);
  HEARTH_ASSIGN(std::string key, apiKey(options));
  HEARTH_TRY(allowConnections(options.connections));
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  // Blocked in the threads that are yet to come, too.
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const base::Descriptor stop(::signalfd(-1, &ending, SFD_CLOEXEC));
  if (!stop.valid())
    return std::unexpected(Failure(base::errnoError(errno, "Waiting for signals")));
  llm_server::ChatServiceOptions service;
  HEARTH_ASSIGN(service.models, openModels(options));
  if (const uint64_t used = base::readAnonymousRssKib() << 10;
      options.memory != 0 && used >= options.memory)
    return usage("The models take {} bytes of private memory; --memory allows {}.", used,
                 options.memory);
  for (const auto& model : service.models)
    if (options.keep && *options.keep >= model->context)
      return usage("--keep {} leaves no room in a context of {} tokens.", *options.keep,
                   model->context);
  service.keep = options.keep;
  service.pool.sessions = options.sessions;
  service.pool.memoryBytes = options.memory;
  service.queue = options.queue;
  service.apiKey = std::move(key);
  service.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeoutSeconds * 1000));
  const llm_server::HttpServer* open = nullptr;
  service.connections = [&] {
    return open->connections();
  };
  HEARTH_ASSIGN(auto listening, llm_server::listenOn(address));
  llm_server::ChatService chat(std::move(service));
  llm_server::HttpServerOptions http;
  http.connection.maxBodyBytes = options.requestBytes;
  http.maxConnections = options.connections;
  HEARTH_ASSIGN(
      const auto server,
      llm_server::HttpServer::create(
          std::move(listening.socket), http,
          [&](const std::shared_ptr<llm_server::HttpExchange>& exchange) { chat.handle(exchange); },
          [&](int status, const std::string& sentence) { return chat.refusal(status, sentence); }));
  open = server.get();
  std::cout << "listening on " << listening.name << '\n' << std::flush;
  const Status ended = server->run(stop.get(), [&] { chat.beginStop(); });
  if (!address.path.empty()) static_cast<void>(::unlink(address.path.c_str()));
  if (!ended) return std::unexpected(Failure(ended.error()));
  return {};
}

}  // namespace hearth::tools
