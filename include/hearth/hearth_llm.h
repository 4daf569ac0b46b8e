// SPDX-License-Identifier: Apache-2.0
// C API of libhearth_llm.so: text from language models in `.litertlm` files (C11 and C++).
//
// The rules of hearth.h hold: handles, errors, strings, structures. Link with libhearth_llm.so and
// libhearth.so. A program opens a model, makes a session, puts the tokens of a prompt into it
// (hearth_llm_prompt_tokens, hearth_llm_session_replace), begins an answer, and calls
// hearth_llm_answer_next until the text is NULL; examples/chat.c is one.
//
// Text is UTF-8. Tokens are numbers from 0 on, one less than the vocabulary at most.
#pragma once

#include "hearth/hearth.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Models ---------------------------------------------------------------------------------

// A file with its tokenizer. Thread-safe.
typedef struct hearth_llm_model hearth_llm_model;

// Whether marked beginnings of texts are kept in the weight store, and taken from it.
typedef enum hearth_llm_prefixes {
  HEARTH_LLM_PREFIXES_MARKED = 0,  // where `compile` lets the weight store be read and written
  HEARTH_LLM_PREFIXES_OFF = 1,
} hearth_llm_prefixes;

// How a model is opened. The caller may free the options, and all that they point to, after the
// call.
typedef struct hearth_llm_options {
  size_t size;
  // How its signatures are compiled: threads, store and the like; NULL = the default values. The
  // fields `signature` and `shapes` must not be set.
  const hearth_compile_options* compile;
  // Path of a tokenizer.json, or a model of SentencePiece, in place of the file's own; NULL = none.
  const char* tokenizer;
  const char* chat_template;  // Jinja, in place of the model's own template; NULL = none
  // The most tokens that the text of a session may have; 0 = what the file says, or else as many
  // as the model has room for.
  uint32_t context;
  int32_t prefixes;  // hearth_llm_prefixes
} hearth_llm_options;

// The default values as an initialiser.
#define HEARTH_LLM_OPTIONS_INIT {sizeof(hearth_llm_options), NULL, NULL, NULL, 0, 0}

// Reads a file's tokenizer and what it says about itself; the weights are not touched yet. NULL
// options = the default values. HEARTH_UNSUPPORTED: the file is no `.litertlm` file, or has no
// tokenizer, or one of a kind that is not supported.
HEARTH_EXPORT hearth_status hearth_llm_open(const char* path, const hearth_llm_options* options,
                                            hearth_llm_model** model, hearth_error** error);
HEARTH_EXPORT void hearth_llm_model_free(hearth_llm_model* model);

// Tells as JSON what the file says: `tokenizer` (its kind), `vocabulary` (the number of tokens),
// `context` (null where the file does not say), `start_tokens`, `stop_sequences` (lists of tokens),
// `stop_texts`, `chat_template` (null: none), `tool_calls` (the form in which the template asks for
// calls of tools, of the options' template where they name one; null: none that is known),
// `prompt_affixes` (by role, the `prefix` and `suffix` of messages where there is no template;
// null: none), `sampler` (`temperature`, `top_k`, `top_p`, `seed`; null: the most likely token),
// `suppressed_tokens`, `caches` (what the file says of tensors that are kept: `name`, `type`,
// `sequence_axis`).
HEARTH_EXPORT hearth_status hearth_llm_model_describe(const hearth_llm_model* model, char** json,
                                                      hearth_error** error);

// --- Text and tokens ------------------------------------------------------------------------

// Flags of the functions below, added together.
typedef enum hearth_llm_flag {
  // Special tokens that are written in the text, like <|im_end|>, stand for these tokens. Without
  // it they are text like any other: text of users should not have that power.
  HEARTH_LLM_PARSE_SPECIAL = 1,
  // Special tokens become text, too.
  HEARTH_LLM_SHOW_SPECIAL = 2,
  // The prompt ends with what stands before an answer.
  HEARTH_LLM_TO_ANSWER = 4,
} hearth_llm_flag;

// The tokens of `bytes` bytes of text, none added at begin or end. `flags`:
// HEARTH_LLM_PARSE_SPECIAL. The caller frees *tokens with hearth_llm_tokens_free.
HEARTH_EXPORT hearth_status hearth_llm_tokenize(const hearth_llm_model* model, const char* text,
                                                size_t bytes, uint32_t flags, int32_t** tokens,
                                                size_t* count, hearth_error** error);
HEARTH_EXPORT void hearth_llm_tokens_free(int32_t* tokens);
// The text of tokens, *bytes long: it may have zeros; `bytes` may be NULL. Bytes that are no UTF-8
// become U+FFFD, as do numbers of no token. `flags`: HEARTH_LLM_SHOW_SPECIAL.
HEARTH_EXPORT hearth_status hearth_llm_detokenize(const hearth_llm_model* model,
                                                  const int32_t* tokens, size_t count,
                                                  uint32_t flags, char** text, size_t* bytes,
                                                  hearth_error** error);

// The text of a conversation as the model was trained on it. `messages`: a JSON array of objects
// with `role` ("system", "developer", "user", "assistant" or "tool"), `content`, and what else the
// model's template knows, such as `tool_calls`; or an object with such an array as `messages`, and
// `tools`, a list of what the model may call, as OpenAI's interface has both. `bytes` as above.
// `flags`: HEARTH_LLM_TO_ANSWER.
// HEARTH_UNSUPPORTED: the model has no chat template, and the options name none.
HEARTH_EXPORT hearth_status hearth_llm_prompt_text(const hearth_llm_model* model,
                                                   const char* messages, uint32_t flags,
                                                   char** text, size_t* bytes,
                                                   hearth_error** error);
// The tokens of that text, which begin with the model's start. `flags`: HEARTH_LLM_TO_ANSWER, and
// HEARTH_LLM_PARSE_SPECIAL for special tokens in messages and tools; those of the template are
// parsed in any case.
HEARTH_EXPORT hearth_status hearth_llm_prompt_tokens(const hearth_llm_model* model,
                                                     const char* messages, uint32_t flags,
                                                     int32_t** tokens, size_t* count,
                                                     hearth_error** error);

// The same for a conversation that may be too long for a context of so many tokens, as of
// hearth_llm_session_context: where its prompt leaves no room for an answer, the oldest messages
// behind those of the system are dropped, up to one of the user, until the others fill half of what
// the system's leave. *dropped says how many; the caller drops them, too, so that the next prompt
// begins alike. Where the user's last message alone is too long, so are the tokens. `flags`:
// HEARTH_LLM_PARSE_SPECIAL.
HEARTH_EXPORT hearth_status hearth_llm_prompt_fitting_tokens(const hearth_llm_model* model,
                                                             const char* messages, size_t context,
                                                             uint32_t flags, int32_t** tokens,
                                                             size_t* count, size_t* dropped,
                                                             hearth_error** error);

// --- Sessions -------------------------------------------------------------------------------

// A text and what the model has computed of it: keys and values of each token. Used by one thread
// at a time.
typedef struct hearth_llm_session hearth_llm_session;

// Makes a session with an empty text. The first one of a model compiles its signatures, which all
// its sessions share.
HEARTH_EXPORT hearth_status hearth_llm_session_create(const hearth_llm_model* model,
                                                      hearth_llm_session** session,
                                                      hearth_error** error);
HEARTH_EXPORT void hearth_llm_session_free(hearth_llm_session* session);
// Makes a session with a text, whose first `marked` tokens are marked as
// hearth_llm_session_mark_prefix does. Where all of them are, and an earlier session has kept the
// scores of the next token in the weight store, signatures that are not compiled yet are compiled
// when more than these scores is needed: the first token is there in milliseconds, and the errors
// of a compilation come from the functions that compute. Errors otherwise: those of
// hearth_llm_session_create, _append and _mark_prefix.
HEARTH_EXPORT hearth_status hearth_llm_session_create_with(const hearth_llm_model* model,
                                                           const int32_t* tokens, size_t count,
                                                           size_t marked,
                                                           hearth_llm_session** session,
                                                           hearth_error** error);
// Makes another session with the same text, computed as far as this one.
HEARTH_EXPORT hearth_status hearth_llm_session_fork(const hearth_llm_session* session,
                                                    hearth_llm_session** fork,
                                                    hearth_error** error);

// The tokens of the text, computed or not: *count of them, valid until the text changes. `count`
// may be NULL.
HEARTH_EXPORT const int32_t* hearth_llm_session_tokens(const hearth_llm_session* session,
                                                       size_t* count);
// The most tokens that the text may have.
HEARTH_EXPORT size_t hearth_llm_session_context(const hearth_llm_session* session);

// Appends tokens to the text; nothing is computed yet. HEARTH_RESOURCE_EXHAUSTED_PERSISTENT: the
// text would get longer than the context. HEARTH_BAD_DATA: a number is no token. After a failure
// the text is as it was. HEARTH_BAD_STATE: an answer is being generated.
HEARTH_EXPORT hearth_status hearth_llm_session_append(hearth_llm_session* session,
                                                      const int32_t* tokens, size_t count,
                                                      hearth_error** error);
// Makes the text what these tokens are. What it begins with already is not computed again:
// *reused, unless `reused` is NULL, says how many tokens that are. Errors as of
// hearth_llm_session_append.
HEARTH_EXPORT hearth_status hearth_llm_session_replace(hearth_llm_session* session,
                                                       const int32_t* tokens, size_t count,
                                                       size_t* reused, hearth_error** error);
// Marks the first `count` tokens as a beginning that other texts have, too, such as the system's
// message: a later session, of any process, finds what was computed of it in the weight store
// (docs/language-models.md). It is written when an answer has ended, and when the session is freed.
// A change of these tokens takes the mark away. The scores are the same with the store and without.
// HEARTH_BAD_DATA: there are fewer tokens.
HEARTH_EXPORT hearth_status hearth_llm_session_mark_prefix(hearth_llm_session* session,
                                                           size_t count, hearth_error** error);
// Drops all tokens but the first `count`. HEARTH_BAD_DATA: there are fewer.
HEARTH_EXPORT hearth_status hearth_llm_session_rewind(hearth_llm_session* session, size_t count,
                                                      hearth_error** error);

// Computes what is not computed yet, and points *scores to the score (logit) of each token as the
// next one, *count of them, valid until the next call for this session. `timeout_ns` 0 = none;
// HEARTH_MISSED_DEADLINE_TRANSIENT or _PERSISTENT: the time is over, and another call goes on.
HEARTH_EXPORT hearth_status hearth_llm_session_scores(hearth_llm_session* session,
                                                      uint64_t timeout_ns, const float** scores,
                                                      size_t* count, hearth_error** error);

// What a session has computed since it was made.
typedef struct hearth_llm_statistics {
  size_t size;
  uint64_t prefilled_tokens;  // computed several at once
  uint64_t decoded_tokens;    // computed one by one
  uint64_t stored_tokens;     // of marked beginnings, found in the weight store
  double prefill_ms;
  double decode_ms;
} hearth_llm_statistics;
HEARTH_EXPORT hearth_status hearth_llm_session_statistics(const hearth_llm_session* session,
                                                          hearth_llm_statistics* statistics,
                                                          hearth_error** error);
// How the model started, as JSON: the report of its signature `decode`, as of
// hearth_compilation_start_report_json.
HEARTH_EXPORT hearth_status hearth_llm_session_start_report_json(const hearth_llm_session* session,
                                                                 char** json, hearth_error** error);

// --- Answers --------------------------------------------------------------------------------

// What happens when an answer has filled the context.
typedef enum hearth_llm_when_full {
  HEARTH_LLM_END_ANSWER = 0,
  // The session's text goes on without its oldest tokens after the first `keep`: the last ones
  // stay, as many as fill half of what the first leave. They are computed again, so it is as if the
  // text had always been that one.
  HEARTH_LLM_DROP_OLDEST = 1,
} hearth_llm_when_full;

// How an answer is generated. The caller may free the options, and all that they point to, after
// the call.
typedef struct hearth_llm_answer_options {
  size_t size;
  uint32_t max_tokens;  // 0 = as many as the context has room for
  float temperature;    // 0 = always the most likely token; negative = the model's own
  uint32_t top_k;       // only the K most likely tokens; 0 = the model's own, or all
  float top_p;          // only the most likely with this probability together; 0 as above
  float min_p;          // only those with this share of the most likely one's; 0 = all
  // A score above 0 of a token that prompt or answer have already is divided by this, one below is
  // multiplied; 0 = 1, which changes nothing.
  float repetition_penalty;
  float presence_penalty;    // subtracted from the score of each token that the answer has,
  float frequency_penalty;   // and this as often as it has it
  uint64_t seed;             // the same seed gives the same answer
  const char* const* stops;  // `stop_count` texts that end the answer, besides the model's own
  size_t stop_count;
  // A JSON Schema that the answer conforms to: it is JSON, and ends where that ends. NULL = any
  // text. docs/chat-server.md says which words are known.
  const char* json_schema;
  // The JSON list of tools that the prompt has told the model of. Calls of them are no part of the
  // answer's text then, and hearth_llm_answer_tool_call tells them. NULL = calls are text.
  const char* tools;
  // Whether the answer is a call: NULL or "auto" = as the model likes; "required" = it is one, of
  // any of the tools; or the name of the tool that it calls. The arguments conform to the tool's
  // `parameters`, of which the words in docs/chat-server.md may be used, and what stands before a
  // call is appended to the session's text. Needs `tools`, and no `json_schema`.
  const char* tool_choice;
  int32_t when_full;  // hearth_llm_when_full
  uint32_t keep;      // with HEARTH_LLM_DROP_OLDEST: how many tokens, less than the context
} hearth_llm_answer_options;

// The default values as an initialiser.
#define HEARTH_LLM_ANSWER_OPTIONS_INIT \
  {sizeof(hearth_llm_answer_options), 0, -1, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, NULL, NULL, 0, 0}

typedef struct hearth_llm_answer hearth_llm_answer;

typedef enum hearth_llm_ending {
  HEARTH_LLM_RUNNING = 0,  // the answer has not ended
  HEARTH_LLM_STOP = 1,     // the model ended it, or a text that ends it came
  HEARTH_LLM_MAX_TOKENS = 2,
  HEARTH_LLM_CONTEXT = 3,  // the context is full
  HEARTH_LLM_CANCELLED = 4,
} hearth_llm_ending;

// Begins an answer that continues the session's text, which has at least one token. Nothing is
// computed yet. The answer belongs to the session until it has ended or is freed: only then may the
// session be changed otherwise. NULL options = the default values. HEARTH_BAD_STATE: another answer
// is being generated, or the text is empty. HEARTH_UNSUPPORTED: the schema has a word that is not
// known, or how the model writes calls of tools is not (`tool_calls` of hearth_llm_model_describe).
HEARTH_EXPORT hearth_status hearth_llm_answer_begin(hearth_llm_session* session,
                                                    const hearth_llm_answer_options* options,
                                                    hearth_llm_answer** answer,
                                                    hearth_error** error);
// Ends the answer, if it has not ended, and frees it.
HEARTH_EXPORT void hearth_llm_answer_free(hearth_llm_answer* answer);

// The tokens of the answer so far: *count of them, valid until the next call for it. `count` may be
// NULL.
HEARTH_EXPORT const int32_t* hearth_llm_answer_tokens(const hearth_llm_answer* answer,
                                                      size_t* count);

// Generates one token, which becomes part of the session's text. *text is what it adds to the
// answer's text, *bytes long: whole characters, or an empty string while a character is incomplete;
// NULL when the answer has ended. Valid until the next call. `timeout_ns` 0 = none; after
// HEARTH_MISSED_DEADLINE_TRANSIENT or _PERSISTENT another call goes on.
HEARTH_EXPORT hearth_status hearth_llm_answer_next(hearth_llm_answer* answer, uint64_t timeout_ns,
                                                   const char** text, size_t* bytes,
                                                   hearth_error** error);
// Points *scores to the scores of the next token, *count of them, computed if need be, which the
// caller may change: the next call of hearth_llm_answer_next chooses by them, among the tokens that
// `json_schema` allows. For grammars and the like. Valid until that call. *count is 0 when the
// answer has ended. `timeout_ns` as above.
HEARTH_EXPORT hearth_status hearth_llm_answer_scores(hearth_llm_answer* answer, uint64_t timeout_ns,
                                                     float** scores, size_t* count,
                                                     hearth_error** error);
// A call of a tool that an answer has made.
typedef struct hearth_llm_tool_call {
  size_t size;
  const char* name;       // of the tool
  const char* arguments;  // a JSON object
} hearth_llm_tool_call;
// How many calls of the tools of its options the answer has made so far. A call is there once all
// of it is. What is no whole call of one of these tools is text.
HEARTH_EXPORT size_t hearth_llm_answer_tool_call_count(const hearth_llm_answer* answer);
// Fills *call with one of them, in the order of the answer from 0 on; its texts are valid until the
// answer is freed. HEARTH_BAD_DATA: there is no such call.
HEARTH_EXPORT hearth_status hearth_llm_answer_tool_call(const hearth_llm_answer* answer,
                                                        size_t index, hearth_llm_tool_call* call,
                                                        hearth_error** error);
// Ends the answer. Any thread may call it while another one is in a function of the answer,
// which ends with the run of the model that it is in.
HEARTH_EXPORT void hearth_llm_answer_cancel(hearth_llm_answer* answer);

// An answer so far. Fields as of hearth_llm_ending and in milliseconds since its beginning.
typedef struct hearth_llm_answer_report {
  size_t size;
  int32_t ending;  // hearth_llm_ending
  uint32_t padding;
  uint64_t tokens;        // that were generated, with those that ended the answer
  double first_token_ms;  // 0 = there is none yet
  double total_ms;        // 0 = the answer has not ended
} hearth_llm_answer_report;
HEARTH_EXPORT hearth_status hearth_llm_answer_describe(const hearth_llm_answer* answer,
                                                       hearth_llm_answer_report* report,
                                                       hearth_error** error);

#ifdef __cplusplus
}  // extern "C"
#endif
