// SPDX-License-Identifier: Apache-2.0
// The functions of hearth_llm.h about sessions.
#include <span>
#include <utility>

#include "llm/c_api/handles.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Status;
using namespace hearth::llm;         // NOLINT(google-build-using-namespace): this is its interface
using namespace hearth::llm::c_api;  // NOLINT(google-build-using-namespace)

namespace {

Status requireNoAnswer(const OpenSession& open) {
  if (open.answer == nullptr) return {};
  return fail(ErrorCode::kBadState, "The session is generating an answer.");
}

}  // namespace

extern "C" {

hearth_status hearth_llm_session_create(const hearth_llm_model* model, hearth_llm_session** session,
                                        hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (session == nullptr) return nullArgument("session");
    HEARTH_ASSIGN(auto compiled, model->model->compiled());
    HEARTH_ASSIGN(auto made, Session::create(std::move(compiled), model->model->context()));
    auto open = std::make_shared<OpenSession>();
    open->model = model->model;
    open->session = std::move(made);
    *session = new hearth_llm_session{std::move(open)};
    return {};
  });
}

hearth_status hearth_llm_session_create_with(const hearth_llm_model* model, const int32_t* tokens,
                                             size_t count, size_t marked,
                                             hearth_llm_session** session, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (tokens == nullptr && count != 0) return nullArgument("tokens");
    if (session == nullptr) return nullArgument("session");
    const std::span text(tokens, count);
    HEARTH_ASSIGN(auto made, model->model->session({text.begin(), text.end()}, marked));
    auto open = std::make_shared<OpenSession>();
    open->model = model->model;
    open->session = std::move(made);
    open->hasPrefixes = marked != 0;
    *session = new hearth_llm_session{std::move(open)};
    return {};
  });
}

void hearth_llm_session_free(hearth_llm_session* session) {
  delete session;
}

hearth_status hearth_llm_session_fork(const hearth_llm_session* session, hearth_llm_session** fork,
                                      hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (fork == nullptr) return nullArgument("fork");
    HEARTH_ASSIGN(auto made, session->open->session->fork());
    auto open = std::make_shared<OpenSession>();
    open->model = session->open->model;
    open->session = std::move(made);
    open->hasPrefixes = session->open->hasPrefixes;
    *fork = new hearth_llm_session{std::move(open)};
    return {};
  });
}

const int32_t* hearth_llm_session_tokens(const hearth_llm_session* session, size_t* count) {
  if (count != nullptr) *count = session == nullptr ? 0 : session->open->session->tokens().size();
  return session == nullptr ? nullptr : session->open->session->tokens().data();
}

size_t hearth_llm_session_context(const hearth_llm_session* session) {
  return session == nullptr ? 0 : session->open->session->context();
}

hearth_status hearth_llm_session_append(hearth_llm_session* session, const int32_t* tokens,
                                        size_t count, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (tokens == nullptr && count != 0) return nullArgument("tokens");
    HEARTH_TRY(requireNoAnswer(*session->open));
    return session->open->session->append(std::span(tokens, count));
  });
}

hearth_status hearth_llm_session_replace(hearth_llm_session* session, const int32_t* tokens,
                                         size_t count, size_t* reused, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (tokens == nullptr && count != 0) return nullArgument("tokens");
    HEARTH_TRY(requireNoAnswer(*session->open));
    HEARTH_ASSIGN(const size_t kept, session->open->session->replace(std::span(tokens, count)));
    if (reused != nullptr) *reused = kept;
    return {};
  });
}

hearth_status hearth_llm_session_mark_prefix(hearth_llm_session* session, size_t count,
                                             hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    OpenSession& open = *session->open;
    HEARTH_TRY(requireNoAnswer(open));
    if (count != 0 && !open.hasPrefixes) {
      open.hasPrefixes = true;
      // Models whose caches cannot be kept are computed.
      if (auto prefixes = open.model->prefixes())
        static_cast<void>(open.session->usePrefixes(std::move(prefixes)));
    }
    return open.session->markPrefix(count);
  });
}

hearth_status hearth_llm_session_rewind(hearth_llm_session* session, size_t count,
                                        hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    HEARTH_TRY(requireNoAnswer(*session->open));
    return session->open->session->rewind(count);
  });
}

hearth_status hearth_llm_session_scores(hearth_llm_session* session, uint64_t timeout_ns,
                                        const float** scores, size_t* count, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (scores == nullptr) return nullArgument("scores");
    if (count == nullptr) return nullArgument("count");
    HEARTH_TRY(requireNoAnswer(*session->open));
    HEARTH_ASSIGN(const auto computed, session->open->session->logits(limitsOf(timeout_ns)));
    *scores = computed.data();
    *count = computed.size();
    return {};
  });
}

hearth_status hearth_llm_session_statistics(const hearth_llm_session* session,
                                            hearth_llm_statistics* statistics,
                                            hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    const Session::Counts& counts = session->open->session->counts();
    return fillSized(
        statistics,
        hearth_llm_statistics{sizeof(hearth_llm_statistics), counts.prefilled, counts.decoded,
                              counts.stored, counts.prefillMs, counts.decodeMs});
  });
}

hearth_status hearth_llm_session_start_report_json(const hearth_llm_session* session, char** json,
                                                   hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (json == nullptr) return nullArgument("json");
    HEARTH_TRY(session->open->session->makeReady());
    *json = copyText(session->open->session->startReportJson());
    return {};
  });
}

}  // extern "C"
