/* SPDX-License-Identifier: Apache-2.0 */
/* hearth.h from C11: it compiles, links, and reports errors as it says. */
#include <stdio.h>
#include <string.h>

#include "hearth/hearth.h"
#include "hearth/hearth_llm.h"

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      return 1;                                               \
    }                                                         \
  } while (0)

static void onMessage(hearth_log_level level, const char* message, void* user) {
  (void)level;
  (void)message;
  ++*(int*)user;
}

int main(void) {
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  hearth_llm_options languageOptions = HEARTH_LLM_OPTIONS_INIT;
  hearth_llm_answer_options answerOptions = HEARTH_LLM_ANSWER_OPTIONS_INIT;
  hearth_model* model = NULL;
  hearth_error* error = NULL;
  int messages = 0;

  EXPECT(strlen(hearth_version()) > 0);
  EXPECT(options.size == sizeof(options));
  EXPECT(languageOptions.size == sizeof(languageOptions));
  EXPECT(answerOptions.temperature < 0);
  EXPECT(options.priority == HEARTH_PRIORITY_MEDIUM);
  EXPECT(hearth_version_number() == HEARTH_VERSION_NUMBER);
  memset(&options, 0xFF, sizeof(options));
  hearth_compile_options_init(&options, sizeof(options));
  EXPECT(options.size == sizeof(options));
  EXPECT(languageOptions.size == sizeof(languageOptions));
  EXPECT(answerOptions.temperature < 0);
  EXPECT(options.priority == HEARTH_PRIORITY_MEDIUM);
  EXPECT(options.store == NULL);

  EXPECT(hearth_set_log_callback(HEARTH_LOG_WARN, onMessage, &messages, &error) == HEARTH_OK);
  EXPECT(error == NULL);
  EXPECT(hearth_set_log_callback(HEARTH_LOG_DEFAULT, NULL, NULL, NULL) == HEARTH_OK);
  EXPECT(messages == 0);
  hearth_set_work_at_exit(1);

  EXPECT(hearth_model_load_file("/nonexistent.tflite", &model, &error) != HEARTH_OK);
  EXPECT(model == NULL);
  EXPECT(error != NULL);
  EXPECT(hearth_error_code(error) == HEARTH_NOT_FOUND);
  EXPECT(strstr(hearth_error_message(error), "/nonexistent.tflite") != NULL);
  hearth_error_free(error);

  EXPECT(hearth_model_load_file(NULL, &model, NULL) == HEARTH_UNEXPECTED_NULL);
  EXPECT(hearth_compile(NULL, &options, NULL, NULL) == HEARTH_UNEXPECTED_NULL);
  hearth_model_free(NULL);
  hearth_compilation_free(NULL);
  hearth_execution_free(NULL);
  hearth_event_free(NULL);
  hearth_error_free(NULL);
  hearth_string_free(NULL);
  return 0;
}
