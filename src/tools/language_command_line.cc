// SPDX-License-Identifier: Apache-2.0
#include "tools/language_command_line.h"

namespace hearth::tools {
namespace {

constexpr const char* kLanguageModelHelp = "The .litertlm file of a language model";
constexpr uint32_t kMostThreads = 1024;
constexpr size_t kMostTokens = size_t{1} << 24;
constexpr float kHottest = 100;

// How a model is made ready and how it takes text.
void addModelOptions(CLI::App* app, LanguageOptions* options) {
  app->add_option("--context", options->context,
                  "The most tokens of prompt and answers (the model's)")
      ->check(CLI::Range(size_t{1}, kMostTokens))
      ->type_name("N");
  app->add_flag("--special-tokens", options->hasSpecialTokens,
                "Special tokens that are written in the text count as such");
  app->add_option(
         "--tokenizer", options->tokenizer,
         "A tokenizer.json, or a model of SentencePiece, in place of the model's own tokenizer")
      ->type_name("FILE");
  app->add_option("--threads", options->threads,
                  "Threads to use (HEARTH_THREADS, else the device's choice)")
      ->check(CLI::Range(0u, kMostThreads))
      ->type_name("N");
}

void addTemplate(CLI::App* app, LanguageOptions* options) {
  app->add_option("--template", options->chatTemplate,
                  "A file with the chat template, or none (the model's)")
      ->type_name("FILE");
}

void addGeneration(CLI::App* app, LanguageOptions* options) {
  app->add_option("--max-tokens", options->maxTokens,
                  "The most tokens of an answer (as many as the context has room for)")
      ->check(CLI::Range(size_t{1}, kMostTokens))
      ->type_name("N");
  app->add_option("--temperature", options->temperature,
                  "How evenly tokens are drawn; 0 takes the most likely one (the model's, else 0)")
      ->check(CLI::Range(0.0F, kHottest))
      ->type_name("X");
  app->add_option("--top-k", options->topK, "Draw among the K most likely tokens; 0 for all")
      ->type_name("K");
  app->add_option("--top-p", options->topP,
                  "Draw among the most likely tokens that have this probability in all")
      ->check(CLI::Range(0.0F, 1.0F))
      ->type_name("P");
  app->add_option("--min-p", options->minP,
                  "Draw among tokens with this share of the most likely one's probability")
      ->check(CLI::Range(0.0F, 1.0F))
      ->type_name("P");
  app->add_option("--repetition-penalty", options->repetitionPenalty,
                  "Above 1: how much less likely tokens are that the text has already (1)")
      ->check(CLI::Range(0.1F, 10.0F))
      ->type_name("R");
  app->add_option("--seed", options->seed, "Where the drawing begins (0)")->type_name("N");
  app->add_option("--stop", options->stops, "A text that ends the answer; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  app->add_option("--json-schema", options->jsonSchema,
                  "A JSON Schema that an answer conforms to, or @FILE")
      ->type_name("TEXT");
  addModelOptions(app, options);
  app->add_option(
         "--keep", options->keep,
         "When the context is full, go on without the oldest tokens after the first N (the "
         "answer ends)")
      ->check(CLI::Range(size_t{0}, kMostTokens))
      ->type_name("N");
  app->add_option(
         "--prefix-store", options->prefixStore,
         "What of a prompt later starts need not compute again: off, marked (what --system "
         "or --prefix gives, and saved conversations), or all of it (marked)")
      ->check(CLI::IsMember({"off", "marked", "all"}))
      ->type_name("WHAT");
  app->add_flag("--stats", options->hasStats, "Show times and memory on standard error");
  app->add_flag("--json", options->isJson, "Print one JSON object");
}

}  // namespace

CLI::App* addChatCommand(CLI::App* app, LanguageOptions* options) {
  CLI::App* const chat = app->add_subcommand("chat", "Talk with a language model");
  chat->add_option("MODEL", options->model, kLanguageModelHelp)->required();
  CLI::Option* const prompt =
      chat->add_option("--prompt", options->prompt,
                       "One message, or @FILE, @- for standard input (a message for each line that "
                       "is typed)")
          ->type_name("TEXT");
  CLI::Option* const system =
      chat->add_option("--system", options->system, "What the model is told first, or @FILE")
          ->type_name("TEXT");
  addTemplate(chat, options);
  CLI::Option* const tools =
      chat->add_option(
              "--tools", options->tools,
              "A JSON list of the tools that the model is told of, as OpenAI's interface has it")
          ->type_name("FILE");
  CLI::Option* const save =
      chat->add_option("--save", options->save,
                       "Save the conversation under this name, after each answer")
          ->type_name("NAME");
  chat->add_option("--resume", options->resume,
                   "Go on with the conversation that was saved under this name")
      ->type_name("NAME")
      ->excludes(save)
      ->excludes(system)
      ->excludes(tools);
  addGeneration(chat, options);
  chat->get_option("--json")->needs(prompt);
  return chat;
}

CLI::App* addCompleteCommand(CLI::App* app, LanguageOptions* options) {
  CLI::App* const complete =
      app->add_subcommand("complete", "Continue a text with a language model");
  complete->add_option("MODEL", options->model, kLanguageModelHelp)->required();
  complete->add_option("--prompt", options->prompt, "The text, or @FILE (standard input)")
      ->type_name("TEXT");
  complete
      ->add_option(
          "--prefix", options->prefix,
          "A text before it that many prompts have, or @FILE: later starts find it computed")
      ->type_name("TEXT");
  addGeneration(complete, options);
  return complete;
}

CLI::App* addCachePrefixesCommand(CLI::App* cache, PrefixesOptions* options) {
  CLI::App* const prefixes = cache->add_subcommand(
      "prefixes", "Look after what was computed of the beginnings of prompts");
  prefixes->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, PrefixesAction action) {
    CLI::App* const command = prefixes->add_subcommand(name, help);
    command
        ->add_option("--store", options->language.store.path,
                     "Folder of the weight store (HEARTH_STORE)")
        ->type_name("DIR");
    command->add_flag("--json", options->language.isJson, "Print one JSON object");
    command->callback([options, action] { options->action = action; });
    return command;
  };
  add("ls", "List the stored prefixes", PrefixesAction::kList);
  CLI::App* const remove = add("rm", "Remove stored prefixes", PrefixesAction::kRemove);
  remove->add_option("PREFIX", options->prefixes, "Beginnings of keys, or models' file names");
  remove->add_flag("--all", options->isAll, "All prefixes");
  CLI::App* const warm =
      add("warm", "Compute a prefix now, so that the next start finds it", PrefixesAction::kWarm);
  LanguageOptions& language = options->language;
  warm->add_option("MODEL", language.model, kLanguageModelHelp)->required();
  CLI::Option* const system =
      warm->add_option("--system", language.system, "A system prompt for hearth chat, or @FILE")
          ->type_name("TEXT");
  warm->add_option("--prefix", language.prefix, "A prefix for hearth complete, or @FILE")
      ->type_name("TEXT")
      ->excludes(system);
  addModelOptions(warm, &language);
  addTemplate(warm, &language);
  return prefixes;
}

CLI::App* addConversationsCommand(CLI::App* app, ConversationsOptions* options) {
  CLI::App* const conversations =
      app->add_subcommand("conversations", "Look after saved conversations");
  conversations->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, ConversationsAction action) {
    CLI::App* const command = conversations->add_subcommand(name, help);
    command->add_flag("--json", options->isJson, "Print one JSON object");
    command->callback([options, action] { options->action = action; });
    return command;
  };
  add("ls", "List the saved conversations", ConversationsAction::kList);
  CLI::App* const remove = add("rm", "Remove saved conversations", ConversationsAction::kRemove);
  remove->add_option("NAME", options->names, "Names of conversations");
  remove->add_flag("--all", options->isAll, "All conversations");
  return conversations;
}

CLI::App* addTokenizeCommand(CLI::App* app, TokenizeOptions* options) {
  CLI::App* const tokenize =
      app->add_subcommand("tokenize", "Show the tokens of a text in a language model");
  tokenize
      ->add_option("MODEL", options->model,
                   "The .litertlm file of a language model, or a tokenizer: a tokenizer.json, or a "
                   ".model of "
                   "SentencePiece")
      ->required();
  tokenize->add_option("TEXT", options->text, "The text, or @FILE (standard input)");
  tokenize->add_flag("--special-tokens", options->hasSpecialTokens,
                     "Special tokens that are written in the text count as such");
  tokenize->add_flag("--json", options->isJson, "Print one JSON object");
  return tokenize;
}

}  // namespace hearth::tools
