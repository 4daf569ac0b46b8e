// SPDX-License-Identifier: Apache-2.0
#include "tools/cache_command_line.h"

#include <string>

#include "base/env.h"
#include "tools/duration.h"
#include "tools/input_shapes.h"
#include "tools/load_model.h"
#include "tools/packing_target.h"

namespace hearth::tools {

CLI::App* addCacheCommand(CLI::App* app, CacheOptions* options) {
  CLI::App* const cache = app->add_subcommand("cache", "Look after the weight store");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, CacheAction action) {
    CLI::App* const command = cache->add_subcommand(name, help);
    command->add_option("--store", options->store, "Folder of the weight store (HEARTH_STORE)")
        ->type_name("DIR");
    command->add_flag("--json", options->isJson, "Print one JSON object");
    command->callback([options, action] { options->action = action; });
    return command;
  };
  const auto addBundle = [&](CLI::App* command) {
    command
        ->add_option("--weight-cache", options->bundle,
                     "A file with one model's packed weights, in place of the store")
        ->type_name("FILE")
        ->excludes("--store");
  };

  const auto addFolder = [&](CLI::App* command) {
    return command
        ->add_option("--cache-dir", options->cacheDir,
                     "A folder for NNAPI's compilation caching, in place of the store")
        ->type_name("DIR")
        ->excludes("--weight-cache");
  };

  CLI::App* const list =
      add("ls", "List the plans: models whose packed weights are kept", CacheAction::kList);
  addBundle(list);
  addFolder(list)->excludes("--store");
  list->add_flag("--all", options->isAll, "Also plans without weights");
  add("stat", "Show what the store holds in all", CacheAction::kStat);
  const auto addModel = [&](CLI::App* command) {
    addBundle(command);
    command->add_option("MODEL", options->model, kModelHelp)->required();
    command->add_option("--part", options->part, kPartHelp)->type_name("NAME");
    command->add_option("--signature", options->signature, "Only this signature (all)")
        ->type_name("KEY");
    command->add_option("--device", options->device, "As for hearth run")->type_name("NAME");
    command->add_option("--shape", options->shapes, kShapeHelp)
        ->allow_extra_args(false)
        ->type_name("NAME=N,N,...");
  };
  CLI::App* const explain =
      add("explain", "Say how the next start of a model goes, and why", CacheAction::kExplain);
  addModel(explain);
  CLI::Option* const folder = addFolder(explain)->excludes("--shape");
  explain->add_option("--token", options->token, "The token for --cache-dir (zeros)")
      ->type_name("HEX")
      ->needs(folder);
  CLI::App* const warm =
      add("warm", "Pack a model's weights now, so that its next start is warm", CacheAction::kWarm);
  addModel(warm);
  warm->add_option("--threads", options->threads, "Threads that pack (HEARTH_THREADS)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  std::string targetList;
  for (const std::string& name : packingTargetNames())
    targetList += (targetList.empty() ? " " : ", ") + name;
  CLI::Option* const targets =
      warm->add_option("--for", options->targets,
                       "Pack for other processors, under qemu-user:" + targetList)
          ->delimiter(',')
          ->allow_extra_args(false)
          ->check(CLI::IsMember(packingTargetNames()).description(""))
          ->type_name("NAME,...");
  warm->add_option("--program", options->program,
                   "With --for: the hearth command of the other architecture (this one)")
      ->needs(targets)
      ->type_name("FILE");
  CLI::App* const verify =
      add("verify", "Read and check every byte, and remove what is wrong", CacheAction::kVerify);
  addBundle(verify);
  addFolder(verify)->excludes("--store");
  CLI::App* const prune =
      add("prune", "Remove what is no longer used, least recently used first", CacheAction::kPrune);
  prune
      ->add_option_function<std::string>(
          "--max-size",
          [options](const std::string& text) {
            const auto bytes = base::parseBytes("--max-size", text);
            if (!bytes) throw CLI::ValidationError(bytes.error().message());
            options->maxBytes = *bytes;
          },
          "Until no more than this is on disk (the store's limit); K, M, G and T are understood")
      ->type_name("BYTES");
  prune
      ->add_option_function<std::string>(
          "--older-than",
          [options](const std::string& text) {
            const auto age = parseDuration("--older-than", text);
            if (!age) throw CLI::ValidationError(age.error().message());
            options->olderThan = *age;
          },
          "And plans that were not used for this long: a number and s, m, h, d or w")
      ->type_name("TIME");
  CLI::App* const remove =
      add("rm", "Remove plans with the weights that no other plan uses", CacheAction::kRemove);
  remove->add_option("PLAN", options->plans, "Keys, beginnings of keys, or models' file names");
  remove->add_flag("--all", options->isAll, "Everything");
  add("path", "Print the folder of the store", CacheAction::kPath);
  return cache;
}

}  // namespace hearth::tools
