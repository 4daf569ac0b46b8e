// SPDX-License-Identifier: Apache-2.0
#include "llm_server/metrics.h"

#include <gtest/gtest.h>

namespace hearth::llm_server {
namespace {

using namespace std::chrono_literals;

TEST(MetricsTest, TheTextIsWhatPrometheusReads) {
  Metrics metrics;
  metrics.countReply(200);
  metrics.countReply(200);
  metrics.countReply(429);
  metrics.countAbandoned();
  metrics.countAnswer("a\"b", {.promptTokens = 10,
                               .reusedTokens = 3,
                               .storedTokens = 2,
                               .tokens = 4,
                               .firstToken = 50ms,
                               .computing = 500ms});
  const std::string text =
      metrics.toText({{.name = "sessions", .type = "gauge", .help = "Kept.", .value = 7}});
  for (const char* const line :
       {"# HELP hearth_sessions Kept.\n# TYPE hearth_sessions gauge\nhearth_sessions 7\n",
        "\nhearth_replies_total{status=\"200\"} 2\nhearth_replies_total{status=\"429\"} 1\n",
        "\nhearth_prompt_tokens_total{model=\"a\\\"b\",source=\"computed\"} 5\n",
        "\nhearth_prompt_tokens_total{model=\"a\\\"b\",source=\"session\"} 3\n",
        "\nhearth_prompt_tokens_total{model=\"a\\\"b\",source=\"store\"} 2\n",
        "\nhearth_generated_tokens_total{model=\"a\\\"b\"} 4\n",
        "\nhearth_abandoned_answers_total 1\n", "\nhearth_computing_seconds_total 0.5\n",
        "\nhearth_first_token_seconds_bucket{le=\"0.03\"} 0\n",
        "\nhearth_first_token_seconds_bucket{le=\"0.1\"} 1\n",
        "\nhearth_first_token_seconds_bucket{le=\"+Inf\"} 1\n",
        "\nhearth_first_token_seconds_sum 0.05\nhearth_first_token_seconds_count 1\n"})
    EXPECT_TRUE(text.contains(line)) << line << text;
}

}  // namespace
}  // namespace hearth::llm_server
