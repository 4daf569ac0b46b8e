// SPDX-License-Identifier: Apache-2.0
// chat MODEL.litertlm QUESTION: asks a language model and prints its answer as it comes.
// cc chat.c -lhearth_llm -lhearth
#include <stdio.h>
#include <stdlib.h>

#include "hearth/hearth_llm.h"

static hearth_error* error;

static void check(hearth_status status) {
  if (status == HEARTH_OK) return;
  fprintf(stderr, "%s\n", hearth_error_message(error));
  hearth_error_free(error);
  exit(1);
}

// The question as JSON. What needs an escape in a string becomes one.
static char* messageOf(const char* question) {
  const char* const begin = "[{\"role\": \"user\", \"content\": \"";
  size_t size = 0;
  for (const char* c = question; *c != '\0'; ++c) size += 6;
  char* const json = malloc(size + 64);
  if (json == NULL) exit(1);
  int at = sprintf(json, "%s", begin);
  for (const unsigned char* c = (const unsigned char*)question; *c != '\0'; ++c)
    at += sprintf(json + at, *c < 0x20 || *c == '"' || *c == '\\' ? "\\u%04x" : "%c", *c);
  sprintf(json + at, "\"}]");
  return json;
}

int main(int count, char** words) {
  if (count != 3) {
    fprintf(stderr, "usage: chat MODEL.litertlm QUESTION\n");
    return 2;
  }
  hearth_llm_model* model;
  hearth_llm_session* session;
  hearth_llm_answer* answer;
  check(hearth_llm_open(words[1], NULL, &model, &error));
  check(hearth_llm_session_create(model, &session, &error));

  char* const messages = messageOf(words[2]);
  int32_t* tokens;
  size_t tokenCount;
  check(hearth_llm_prompt_tokens(model, messages, HEARTH_LLM_TO_ANSWER, &tokens, &tokenCount,
                                 &error));
  check(hearth_llm_session_replace(session, tokens, tokenCount, NULL, &error));
  hearth_llm_tokens_free(tokens);
  free(messages);

  check(hearth_llm_answer_begin(session, NULL, &answer, &error));
  for (;;) {
    const char* text;
    size_t bytes;
    check(hearth_llm_answer_next(answer, 0, &text, &bytes, &error));
    if (text == NULL) break;
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
  }
  putchar('\n');

  hearth_llm_answer_free(answer);
  hearth_llm_session_free(session);
  hearth_llm_model_free(model);
  return 0;
}
