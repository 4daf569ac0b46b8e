// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_request_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/format.h"

namespace hearth::llm_server {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr size_t kMaxLineBytes = 1024;  // between chunks

std::string lowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The characters of a method or a header's name.
bool isToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool isControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
}

// The whole text as a number of digits of this base, and nothing else.
bool readNumber(std::string_view text, int base, size_t* number) {
  const auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return !text.empty() && problem == std::errc() && end == text.data() + text.size();
}

// Whether a list of words that commas divide has this one.
bool hasWord(std::string_view list, std::string_view word) {
  const std::string lower = lowerCase(list);
  std::string_view rest = lower;
  for (;;) {
    const size_t comma = rest.find(',');
    if (trimmed(rest.substr(0, comma)) == word) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

void HttpRequestReader::fail(int status, std::string sentence) {
  state_ = State::kFailed;
  failure_ = {status, std::move(sentence)};
}

size_t HttpRequestReader::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && (state_ == State::kHead || state_ == State::kBody))
    taken += state_ == State::kHead ? takeHead(bytes.substr(taken)) : takeBody(bytes.substr(taken));
  return taken;
}

bool HttpRequestReader::takeContinue() {
  return state_ == State::kBody && std::exchange(isContinueWanted_, false);
}

size_t HttpRequestReader::takeHead(std::string_view bytes) {
  // Clients may send empty lines between requests.
  if (head_.empty() && (bytes[0] == '\r' || bytes[0] == '\n')) return 1;
  const size_t old = head_.size();
  const size_t added = std::min(bytes.size(), kMaxHeadBytes - old);
  head_.append(bytes.substr(0, added));
  const size_t from = old - std::min(old, kHeadEnd.size() - 1);
  const size_t end = head_.find(kHeadEnd, from);
  if (end == std::string::npos) {
    if (head_.size() == kMaxHeadBytes)
      fail(431,
           base::formatText("The head of the request is longer than {} bytes.", kMaxHeadBytes));
    return added;
  }
  head_.resize(end);
  readHead();
  return end + kHeadEnd.size() - old;
}

void HttpRequestReader::readHead() {
  std::string_view rest = head_;
  bool isFirst = true;
  while (state_ == State::kHead && (isFirst || !rest.empty())) {
    const size_t end = rest.find(kLineEnd);
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kLineEnd.size());
    if (!(std::exchange(isFirst, false) ? readRequestLine(line) : readHeader(line))) return;
  }
  beginBody();
}

bool HttpRequestReader::readRequestLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || !isToken(line.substr(0, first)) ||
      std::ranges::any_of(line, isControl)) {
    fail(400, "The first line of the request is not 'METHOD PATH HTTP/1.1'.");
    return false;
  }
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    fail(version.starts_with("HTTP/") ? 505 : 400,
         "The request is not of the version HTTP/1.1 or HTTP/1.0.");
    return false;
  }
  std::string_view target = line.substr(first + 1, second - first - 1);
  // A proxy may send the whole address.
  if (!target.starts_with('/') && target != "*") {
    const size_t host = target.find("://");
    const size_t path = host == std::string_view::npos ? host : target.find('/', host + 3);
    if (path == std::string_view::npos) {
      fail(400, "The request names no path.");
      return false;
    }
    target.remove_prefix(path);
  }
  request_.method = line.substr(0, first);
  request_.path = target.substr(0, target.find('?'));
  request_.isVersion10 = version == "HTTP/1.0";
  request_.keepsAlive = !request_.isVersion10;
  return true;
}

bool HttpRequestReader::readHeader(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon)) ||
      std::ranges::any_of(line, isControl)) {
    fail(400, "A header of the request is not 'Name: value'.");
    return false;
  }
  if (request_.headers.size() == kMaxHeaders) {
    fail(431, base::formatText("The request has more than {} headers.", kMaxHeaders));
    return false;
  }
  request_.headers.emplace_back(lowerCase(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return true;
}

void HttpRequestReader::beginBody() {
  bool hasLength = false;
  bool isChunked = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "connection") {
      if (hasWord(value, "close")) request_.keepsAlive = false;
      if (request_.isVersion10 && hasWord(value, "keep-alive")) request_.keepsAlive = true;
    } else if (name == "expect" && !request_.isVersion10) {
      isContinueWanted_ = lowerCase(value) == "100-continue";
    } else if (name == "transfer-encoding") {
      if (isChunked || request_.isVersion10 || lowerCase(value) != "chunked")
        return fail(501, "The transfer encoding of the request is not 'chunked'.");
      isChunked = true;
    } else if (name == "content-length") {
      if (hasLength || !readNumber(value, 10, &left_))
        return fail(400, "The length of the request's body is no number, or there are two.");
      hasLength = true;
    }
  }
  if (isChunked && hasLength)
    return fail(400, "The request has a transfer encoding and a length as well.");
  if (left_ > maxBodyBytes_)
    return fail(413, base::formatText("The body of the request has {} bytes; at most {} are read.",
                                      left_, maxBodyBytes_));
  part_ = isChunked ? Part::kChunkSize : Part::kLength;
  state_ = isChunked || left_ > 0 ? State::kBody : State::kDone;
}

size_t HttpRequestReader::takeBody(std::string_view bytes) {
  return part_ == Part::kLength || part_ == Part::kChunk ? takeData(bytes) : takeLine(bytes);
}

size_t HttpRequestReader::takeData(std::string_view bytes) {
  const size_t count = std::min(bytes.size(), left_);
  request_.body.append(bytes.substr(0, count));
  left_ -= count;
  if (left_ == 0) {
    if (part_ == Part::kLength)
      state_ = State::kDone;
    else
      part_ = Part::kChunkEnd;
  }
  return count;
}

size_t HttpRequestReader::takeLine(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t count = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line_.size() + count > kMaxLineBytes) {
    fail(400, "A line between the chunks of the request's body is too long.");
    return count;
  }
  line_.append(bytes.substr(0, count));
  if (end != std::string_view::npos) readBodyLine();
  return count;
}

void HttpRequestReader::readBodyLine() {
  const std::string line = std::exchange(line_, {});
  if (!line.ends_with(kLineEnd)) return fail(400, "A line of the request does not end with CR LF.");
  const std::string_view text = std::string_view(line).substr(0, line.size() - kLineEnd.size());
  switch (part_) {
    case Part::kChunkSize:
      if (!readNumber(trimmed(text.substr(0, text.find(';'))), 16, &left_))
        return fail(400, "The size of a chunk of the request's body is no number.");
      if (left_ > maxBodyBytes_ - request_.body.size())
        return fail(413, base::formatText("The body of the request has more than {} bytes.",
                                          maxBodyBytes_));
      part_ = left_ == 0 ? Part::kTrailer : Part::kChunk;
      return;
    case Part::kChunkEnd:
      if (!text.empty()) return fail(400, "A chunk of the request's body is longer than it says.");
      part_ = Part::kChunkSize;
      return;
    case Part::kTrailer:
      trailerBytes_ += line.size();
      if (text.empty())
        state_ = State::kDone;
      else if (trailerBytes_ > kMaxHeadBytes)
        fail(431, "The headers behind the request's body are too long.");
      return;
    case Part::kLength:
    case Part::kChunk:
      return;
  }
}

}  // namespace hearth::llm_server
