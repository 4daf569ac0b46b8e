// SPDX-License-Identifier: Apache-2.0
// The `hearth` command: its command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <thread>

#include "base/format.h"
#include "base/nearest_word.h"
#include "tools/cache_command_line.h"
#include "tools/chat_server_command_line.h"
#include "tools/commands.h"
#include "tools/custom_operators.h"
#include "tools/input_shapes.h"
#include "tools/language_command_line.h"
#include "tools/language_commands.h"
#include "tools/load_model.h"
#include "tools/option_checks.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kMaxRepeat = 10'000'000;
constexpr uint32_t kMaxThreads = 1024;
constexpr unsigned kMaxCaseSeconds = 86400;
constexpr uint32_t kMaxClients = 4096;
constexpr uint32_t kMaxIdleSeconds = 7 * 86400;
constexpr int kMaxDescriptor = 1 << 20;

// The values of --mean and --std until the whole command line is parsed.
struct NormalizationText {
  std::vector<double> mean;
  std::vector<double> std;
};

void addCustomOperators(CLI::App* app, std::vector<std::string>* libraries) {
  app->add_option("--custom-operators", *libraries,
                  "A shared library with operators for custom operations; may be repeated")
      ->allow_extra_args(false)
      ->type_name("LIBRARY");
}

void addStoreFlags(CLI::App* app, StoreFlags* flags) {
  app->add_option("--store", flags->path, "Folder of the weight store (HEARTH_STORE)")
      ->type_name("DIR");
  app->add_option("--store-mode", flags->mode,
                  "off, read-only, read-write or strict (HEARTH_STORE_MODE)")
      ->check(CLI::IsMember({"off", "read-only", "read-write", "strict"}))
      ->type_name("MODE");
  app->add_option("--store-size", flags->maxBytes,
                  "The most that the store may take (HEARTH_STORE_SIZE); K, M and G are understood")
      ->transform(byteCount("--store-size"))
      ->type_name("BYTES");
  app->add_option("--weight-cache", flags->weightCache,
                  "One file for this model's packed weights, in place of the store")
      ->type_name("FILE")
      ->excludes("--store");
}

void addRunOptions(CLI::App* app, RunOptions* options, NormalizationText* normalization) {
  app->add_option("MODEL", options->model, kModelHelp)->required();
  app->add_option("--part", options->part, kPartHelp)->type_name("NAME");
  app->add_option("--input", options->inputs,
                  "A file for each input: .npy, a PNG, JPEG or BMP picture, a .wav sound of "
                  "16 kHz, or raw bytes; for an input of strings the text itself, or @FILE with a "
                  "string on each line")
      ->type_name("FILE...");
  app->add_option("--random-input", options->randomSeed, "Random inputs instead of files")
      ->type_name("SEED")
      ->excludes("--input");
  app->add_option("--labels", options->labels, "Names of the classes, one a line")
      ->type_name("FILE");
  app->add_option("--locale", options->locale,
                  "Language of the model's own labels, for example en (the first)")
      ->type_name("LANGUAGE")
      ->excludes("--labels");
  app->add_option("--top", options->top, "How many classes or detected things to show (5)")
      ->type_name("K");
  app->add_option(
         "--output-dir", options->outputDir,
         "Folder for output_N.npy, and for overlay.png of a picture with what was found in it")
      ->type_name("DIR");
  app->add_option("--overlay", options->overlay,
                  "PNG of the picture with its segments, boxes or key points")
      ->type_name("FILE");
  app->add_option("--device", options->device,
                  "Device to run on (all that take parts of the model)")
      ->type_name("NAME");
  app->add_option("--signature", options->signature, "Entry point of the model (the first)")
      ->type_name("KEY");
  app->add_option("--shape", options->shapes, kShapeHelp)
      ->allow_extra_args(false)
      ->type_name("NAME=N,N,...");
  app->add_option("--outputs", options->outputs,
                  "Outputs that are wanted (all); what leads to no other is not computed")
      ->type_name("NAME...");
  app->add_option("--threads", options->threads,
                  "Threads to use (HEARTH_THREADS, else the device's choice)")
      ->check(CLI::Range(0u, kMaxThreads))
      ->type_name("N");
  app->add_option("--preparation", options->preparation,
                  "When the model is made ready: whole or just-in-time (HEARTH_PREPARATION)")
      ->check(CLI::IsMember({"whole", "just-in-time"}))
      ->type_name("WHEN");
  app->add_option("--tuning", options->tuning,
                  "Whether kernels are chosen by measuring runs: on or off (HEARTH_TUNING)")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("WORD");
  addStoreFlags(app, &options->store);
  CLI::Option* const folder =
      app->add_option("--cache-dir", options->cacheDir,
                      "Existing folder for compilation caching; the store needs none")
          ->type_name("DIR");
  app->add_option("--token", options->token,
                  "The model's token for --cache-dir: 64 hexadecimal digits (zeros)")
      ->needs(folder)
      ->type_name("HEX");
  app->add_option("--repeat", options->repeat, "Runs after the first (0; 20 for bench)")
      ->check(CLI::Range(uint64_t{0}, kMaxRepeat))
      ->type_name("N");
  app->add_option("--mean", normalization->mean, "Mean of R, G and B, 0 to 255")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("R,G,B");
  app->add_option("--std", normalization->std, "Standard deviation of R, G and B, 0 to 255")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("R,G,B");
  app->add_option("--max-activation-bytes", options->maxActivationBytes,
                  "Refuse models that need more for intermediate results (half of the memory); "
                  "K, M and G are understood")
      ->transform(byteCount("--max-activation-bytes"));
  app->add_option("--longest-step", options->longestStepSeconds,
                  "How long a driver in another process may take for an operation, or for all of "
                  "them if it tells no progress: one that takes longer, and 5 seconds at least, "
                  "hangs (no limit)")
      ->check(positiveSeconds());
  app->add_option("--timeout", options->timeoutSeconds, "End with exit code 1 after this time")
      ->check(positiveSeconds());
  app->add_flag("--json", options->isJson, "Print one JSON object");
}

void addBenchOptions(CLI::App* app, RunOptions* options) {
  app->add_flag(
         "--until-tuned", options->isUntilTuned,
         "Tuning on, and after --repeat more runs until the kernels are chosen: at most 400, "
         "or 30 seconds of quick ones")
      ->excludes("--tuning");
  app->add_option("--api", options->api, "hearth, or nnapi: the C functions of NNAPI (hearth)")
      ->check(CLI::IsMember({"hearth", "nnapi"}))
      ->type_name("API");
}

void addConformanceOptions(CLI::App* app, ConformanceOptions* options) {
  options->processes = std::max(1u, std::thread::hardware_concurrency());
  app->add_option("FILE", options->files, "Files of test vectors (*.nntv)")->required();
  app->add_option("--device", options->device, "Device to test (nnapi-reference)")
      ->type_name("NAME");
  app->add_option("--api", options->api,
                  "driver: below the runtime; nnapi: through libneuralnetworks.so (driver)")
      ->check(CLI::IsMember({"driver", "nnapi"}))
      ->type_name("API");
  app->add_option("--mode", options->mode, "How executions of --api nnapi are computed (sync)")
      ->type_name("MODE");
  app->add_option("--filter", options->filter,
                  "Only cases whose name or specification holds this text, or that use the "
                  "operation of this name")
      ->type_name("S");
  app->add_option("--processes", options->processes,
                  "Cases to run at the same time (one for each processor)")
      ->check(CLI::Range(1u, kMaxThreads))
      ->type_name("N");
  app->add_option("--timeout", options->caseTimeoutSeconds, "Seconds that one case may take (60)")
      ->check(CLI::Range(1u, kMaxCaseSeconds))
      ->type_name("SECONDS");
  app->add_flag("--verbose", options->isVerbose, "Every case, not only those that fail");
  app->add_flag("--json", options->isJson,
                "Print one JSON object, with the kernel of each operation");
}

void addProbeOptions(CLI::App* app, ProbeOptions* options) {
  CLI::Option* const probe =
      app->add_option("--probe", options->library,
                      "Try an external delegate for TensorFlow Lite: the library that an NPU's "
                      "vendor ships. Shows the manifest that makes a device of it")
          ->type_name("LIBRARY");
  app->add_option("MODEL", options->model,
                  "A model for the probe: what the delegate takes of it, its results and times "
                  "beside the processor's")
      ->needs(probe);
  const auto addList = [&](const char* name, std::vector<std::string>* list, const char* help,
                           const char* type) {
    app->add_option(name, *list, help)->allow_extra_args(false)->type_name(type)->needs(probe);
  };
  addList("--option", &options->options, "Option of the delegate; may be repeated", "KEY=VALUE");
  addList("--variable", &options->variables, "Variable of its environment; may be repeated",
          "NAME=VALUE");
  addList("--device-node", &options->devices,
          "Device node that it uses, such as /dev/galcore; may be repeated", "PATH");
  addList("--folder", &options->folders, "Folder that it reads and writes; may be repeated",
          "PATH");
  addList("--custom-operator", &options->customOperators,
          "Custom operation of the model that the delegate computes; may be repeated", "NAME");
  app->add_option("--tflite", options->version,
                  "Version of TensorFlow that it was compiled for, such as 2.14 (not known)")
      ->type_name("VERSION")
      ->needs(probe);
}

void addServeOptions(CLI::App* app, ServeOptions* options) {
  app->add_option("--device", options->device, "Device to serve")->type_name("NAME");
  app->add_option("--manifest", options->manifest,
                  "Manifest of the device's driver (HEARTH_DRIVER_PATH is searched)")
      ->type_name("FILE");
  CLI::Option* const socket =
      app->add_option("--socket", options->socket,
                      "Socket to make, for all clients (the one that a service manager passes)")
          ->type_name("PATH");
  app->add_option("--clients", options->clients, "Clients to serve at the same time (64)")
      ->check(CLI::Range(1u, kMaxClients))
      ->type_name("N");
  app->add_option("--idle-exit", options->idleExit,
                  "End when there has been no client for so many seconds (never)")
      ->check(CLI::Range(1u, kMaxIdleSeconds))
      ->type_name("SECONDS");
  CLI::Option* const descriptor =
      app->add_option("--fd", options->descriptor,
                      "Connected socket of the only client, or a listening socket for the programs "
                      "of one user")
          ->check(CLI::Range(0, kMaxDescriptor))
          ->type_name("N")
          ->excludes(socket);
  app->add_option("--sandbox", options->sandbox,
                  "What the host gives up before it listens to clients: on (all that the kernel "
                  "can take: files but those of the driver, network, other processes), require "
                  "(it does not start where a part is missing) or off (on)")
      ->check(CLI::IsMember({"on", "off", "require"}))
      ->type_name("MODE");
  app->add_option("--file", options->files,
                  "File or folder that the driver may use in the sandbox, besides the weight "
                  "store and what its manifest names")
      ->allow_extra_args(false)
      ->type_name("PATH");
  app->add_option("--memory", options->memory,
                  "Bytes that the host may allocate (no limit); K, M and G are understood")
      ->transform(byteCount("--memory"));
  app->add_option(
         "--client-memory", options->clientMemory,
         "Bytes that the host keeps for one client, its models among them (half of the machine's "
         "memory); K, M and G are understood")
      ->transform(byteCount("--client-memory"));
  app->add_flag("--detach", options->isDetached,
                "Go on in a process that is not the caller's child")
      ->needs(descriptor);
}

Outcome<void> applyNormalization(const NormalizationText& text, RunOptions* options) {
  if (text.mean.empty() && text.std.empty()) return {};
  if (text.mean.size() != text.std.size() || (text.mean.size() != 1 && text.mean.size() != 3))
    return usage("--mean and --std come together, each with one value or three.");
  Normalization normalization;
  for (size_t i = 0; i < 3; ++i) {
    const size_t from = text.mean.size() == 1 ? 0 : i;
    normalization.mean[i] = text.mean[from];
    normalization.std[i] = text.std[from];
    if (!std::isfinite(normalization.mean[i]) || !std::isfinite(normalization.std[i]) ||
        normalization.std[i] == 0)
      return usage("--mean {} with --std {} is no normalisation.", normalization.mean[i],
                   normalization.std[i]);
  }
  options->normalization = normalization;
  return {};
}

int fail(const Failure& failure) {
  std::string sentence = failure.sentence;
  while (!sentence.empty() && (sentence.back() == '\n' || sentence.back() == ' '))
    sentence.pop_back();
  for (char& c : sentence)
    if (c == '\n') c = ' ';
  std::cerr << "hearth: " << sentence << "\n";
  return failure.exitCode;
}

// Says that `app` has no command `typed`, and which of its commands that probably was; `prefix` is
// the command line up to it.
std::string unknownCommand(const CLI::App& app, std::string_view prefix, const std::string& typed) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands({}))
    names.push_back(command->get_name());
  if (const auto nearest = base::nearestWord(typed, names))
    return base::formatText("There is no command {} {}. Did you mean {} {}? {} --help lists all.",
                            prefix, typed, prefix, *nearest, prefix);
  return base::formatText("There is no command {} {}; {} --help lists all.", prefix, typed, prefix);
}

// Makes a sentence of the parser's message, which also fails to name a command that does not exist.
std::string usageSentence(const CLI::App& app, int argc, char** argv, std::string problem) {
  const std::string first = argc > 1 ? argv[1] : "";
  const auto commands =
      app.get_subcommands([&](const CLI::App* command) { return command->check_name(first); });
  if (!first.empty() && first[0] != '-' && commands.empty())
    return unknownCommand(app, "hearth", first);
  const std::string second = argc > 2 ? argv[2] : "";
  const auto isSecond = [&](const CLI::App* command) {
    return command->check_name(second);
  };
  if (!commands.empty() && !second.empty() && second[0] != '-' &&
      !commands[0]->get_subcommands({}).empty() && commands[0]->get_subcommands(isSecond).empty())
    return unknownCommand(*commands[0], "hearth " + first, second);
  while (problem.ends_with('.')) problem.pop_back();
  return base::formatText("The command line is wrong ({}); hearth {}--help tells more.", problem,
                          first.empty() || first[0] == '-' ? "" : first + " ");
}

int runMain(int argc, char** argv) {
  // When the reader of a pipe leaves, the stream's state shows it.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app("Run neural networks on this machine.", "hearth");
  app.set_version_flag("--version", "hearth " + std::string(hearth_version()));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);

  std::vector<std::string> customOperators;
  RunOptions run;
  RunOptions bench;
  bench.isBench = true;
  NormalizationText runNormalization;
  NormalizationText benchNormalization;
  CLI::App* runApp = app.add_subcommand("run", "Run a model on files and show its outputs");
  addRunOptions(runApp, &run, &runNormalization);
  CLI::App* benchApp =
      app.add_subcommand("bench", "Measure start, inference and memory of a model");
  addRunOptions(benchApp, &bench, &benchNormalization);
  addBenchOptions(benchApp, &bench);
  addCustomOperators(runApp, &customOperators);
  addCustomOperators(benchApp, &customOperators);

  // Both commands take what they share of the options of `run`.
  const auto addShared = [](CLI::App* command, LanguageOptions* options) {
    addStoreFlags(command, &options->store);
    command
        ->add_option("--timeout", options->timeoutSeconds, "End with exit code 1 after this time")
        ->check(positiveSeconds());
  };
  LanguageOptions chat;
  CLI::App* const chatApp = addChatCommand(&app, &chat);
  addShared(chatApp, &chat);
  LanguageOptions complete;
  CLI::App* const completeApp = addCompleteCommand(&app, &complete);
  addShared(completeApp, &complete);
  ConversationsOptions conversations;
  CLI::App* const conversationsApp = addConversationsCommand(&app, &conversations);
  ChatServerOptions chatServer;
  CLI::App* const chatServerApp = addChatServerCommand(&app, &chatServer);
  addStoreFlags(chatServerApp, &chatServer.store);
  TokenizeOptions tokenize;
  CLI::App* const tokenizeApp = addTokenizeCommand(&app, &tokenize);

  InspectOptions inspect;
  CLI::App* inspectApp =
      app.add_subcommand("inspect", "Show what a model holds and which device takes what");
  inspectApp->add_option("MODEL", inspect.model, kModelHelp)->required();
  inspectApp->add_option("--part", inspect.part, kPartHelp)->type_name("NAME");
  inspectApp->add_option("--shape", inspect.shapes, kShapeHelp)
      ->allow_extra_args(false)
      ->type_name("NAME=N,N,...");
  inspectApp->add_flag("--all", inspect.isFull, "Every operation and tensor, not groups");
  inspectApp->add_flag("--plan", inspect.hasPlan,
                       "Show how NNAPI divides the model among the devices");
  inspectApp
      ->add_option("--timeout", inspect.timeoutSeconds, "End with exit code 1 after this time")
      ->check(positiveSeconds());
  inspectApp->add_flag("--json", inspect.isJson, "Print one JSON object");
  addCustomOperators(inspectApp, &customOperators);

  DevicesOptions devices;
  CLI::App* devicesApp = app.add_subcommand("devices", "List the devices");
  devicesApp->add_flag("--json", devices.isJson, "Print one JSON object");
  devicesApp->add_flag("--measure", devices.measures,
                       "Measure again how fast the devices are that drivers want measured");
  addProbeOptions(devicesApp, &devices.probe);

  ServeOptions serve;
  CLI::App* serveApp = app.add_subcommand(
      "serve", "Run a driver for programs that are to have it in a process of its own");
  addServeOptions(serveApp, &serve);

  CacheOptions cache;
  CLI::App* cacheApp = addCacheCommand(&app, &cache);
  for (const char* name : {"explain", "warm"})
    addCustomOperators(cacheApp->get_subcommand(name), &customOperators);
  // These are libraries of one architecture.
  cacheApp->get_subcommand("warm")->get_option("--for")->excludes("--custom-operators");

  PrefixesOptions prefixes;
  CLI::App* const prefixesApp = addCachePrefixesCommand(cacheApp, &prefixes);

  ConformanceOptions conformance;
  CLI::App* conformanceApp =
      app.add_subcommand("conformance", "Run NNAPI test vectors on a device");
  addConformanceOptions(conformanceApp, &conformance);

  // The parser takes the last argument first. Where a command is to follow, none asks what there
  // is.
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty() || (arguments.size() == 1 && (cacheApp->check_name(arguments[0]) ||
                                                      conversationsApp->check_name(arguments[0]))))
    arguments.emplace_back("--help");
  std::ranges::reverse(arguments);
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(Failure(kExitUsage, usageSentence(app, argc, argv, error.what())));
  }

  Outcome<void> outcome;
  if (*runApp) outcome = applyNormalization(runNormalization, &run);
  if (*benchApp) outcome = applyNormalization(benchNormalization, &bench);
  if (outcome) outcome = loadCustomOperators(customOperators);
  if (outcome) {
    if (*runApp)
      outcome = runCommand(run);
    else if (*benchApp)
      outcome = bench.api == "nnapi" ? nnapiBenchCommand(bench) : runCommand(bench);
    else if (*inspectApp)
      outcome = inspectCommand(inspect, describeLanguage);
    else if (*chatApp)
      outcome = chatCommand(chat);
    else if (*completeApp)
      outcome = completeCommand(complete);
    else if (*conversationsApp)
      outcome = conversationsCommand(conversations);
    else if (*chatServerApp)
      outcome = chatServerCommand(chatServer);
    else if (*tokenizeApp)
      outcome = tokenizeCommand(tokenize);
    else if (*prefixesApp)
      outcome = cachePrefixesCommand(prefixes);
    else if (*cacheApp)
      outcome = cacheCommand(cache);
    else if (*serveApp)
      outcome = serveCommand(serve);
    else if (*conformanceApp)
      outcome = conformanceCommand(conformance);
    else
      outcome = devices.probe.library.empty() ? devicesCommand(devices) : probeCommand(devices);
  }
  if (!outcome) return fail(outcome.error());
  std::cout.flush();
  if (!std::cout) return fail(Failure(kExitFailure, "Standard output cannot be written."));
  return 0;
}

}  // namespace
}  // namespace hearth::tools

int main(int argc, char** argv) {
  try {
    return hearth::tools::runMain(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "hearth: There is no memory left.\n";
  } catch (const std::exception& exception) {
    std::cerr << "hearth: " << exception.what() << "\n";
  }
  return hearth::tools::kExitFailure;
}
