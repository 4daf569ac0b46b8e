// SPDX-License-Identifier: Apache-2.0
#include "ipc/fair_share.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

namespace hearth::ipc {
namespace {

// More is charged for no turn, so that the sums stay far below 2^64.
constexpr std::chrono::nanoseconds kMostCost = std::chrono::hours(24);

// What a client is charged for `nanoseconds` of processor time.
uint64_t weighed(uint64_t nanoseconds, hal::Priority priority) {
  switch (priority) {
    case hal::Priority::kLow:
      return nanoseconds * 4;
    case hal::Priority::kMedium:
      return nanoseconds;
    case hal::Priority::kHigh:
      return nanoseconds / 4;
  }
  return nanoseconds;
}

// A call of take() that waits, on its caller's stack.
struct Waiter {
  enum class Outcome { kNone, kTurn, kClosed };

  hal::Priority priority;
  uint64_t number;  // in the order of arrival
  Outcome outcome = Outcome::kNone;
  uint64_t expected = 0;  // of the turn
  std::condition_variable changed;
};

struct IsBefore {
  bool operator()(const Waiter* a, const Waiter* b) const {
    return std::tuple(b->priority, a->number) < std::tuple(a->priority, b->number);
  }
};

// What a user or a client has used, and what goes on for it now.
struct Account {
  uint64_t used = 0;
  size_t waiting = 0;
  size_t running = 0;

  // For one more execution that wants a turn. `level` is what the last one served had used before.
  void arrive(uint64_t level) {
    constexpr auto kSaved =
        static_cast<uint64_t>(std::chrono::nanoseconds(FairShare::kMostSaved).count());
    if (waiting == 0 && running == 0) used = std::max(used, level - std::min(level, kSaved));
    ++waiting;
  }
  void begin(uint64_t expected) {
    --waiting;
    ++running;
    used += expected;
  }
  void end(uint64_t expected, uint64_t cost) {
    --running;
    used = used - std::min(used, expected) + cost;
  }
};

}  // namespace

struct FairShare::ClientState {
  explicit ClientState(uint32_t user) : user(user) {}

  const uint32_t user;
  Account account;
  uint64_t lastCost = 0;  // of its last turn, not weighed
  bool isClosed = false;
  std::set<Waiter*, IsBefore> waiters;
};

struct FairShare::State {
  struct User {
    Account account;
    uint64_t level = 0;  // what the client served last had used before
    std::set<std::shared_ptr<ClientState>> clients;
  };

  explicit State(size_t turnsAtOnce) : turnsAtOnce(turnsAtOnce) {}

  // Gives out free turns while somebody waits.
  void giveTurns() {
    while (running < turnsAtOnce && waiting > 0) giveTurn();
  }

  // One who waits leaves without a turn.
  void leave(ClientState& client, Waiter& waiter) {
    client.waiters.erase(&waiter);
    --client.account.waiting;
    --users.at(client.user).account.waiting;
    --waiting;
  }

  void removeClient(const std::shared_ptr<ClientState>& client) {
    client->isClosed = true;
    for (Waiter* const waiter : std::set(client->waiters)) {
      leave(*client, *waiter);
      waiter->outcome = Waiter::Outcome::kClosed;
      waiter->changed.notify_one();
    }
    users.at(client->user).clients.erase(client);
    forgetUsers();
  }

  // Users without clients matter only as long as they have a debt.
  void forgetUsers() {
    std::erase_if(users, [this](const auto& entry) {
      const User& user = entry.second;
      return user.clients.empty() && user.account.running == 0 && user.account.used <= level;
    });
  }

  mutable std::mutex mutex;
  const size_t turnsAtOnce;
  std::map<uint32_t, User> users;
  uint64_t level = 0;  // what the user served last had used before
  size_t waiting = 0;
  size_t running = 0;
  uint64_t arrivals = 0;

 private:
  // Smaller goes first: who used less, then who has fewer turns, then who came first.
  using Rank = std::tuple<uint64_t, size_t, uint64_t>;

  static uint64_t firstArrival(const ClientState& client) {
    return (*client.waiters.begin())->number;
  }
  static Rank rankOf(const ClientState& client) {
    return {client.account.used, client.account.running, firstArrival(client)};
  }
  static Rank rankOf(const User& user) {
    return {user.account.used, user.account.running, firstArrival(*nextClient(user))};
  }

  // `user` has a client that waits.
  static ClientState* nextClient(const User& user) {
    ClientState* next = nullptr;
    for (const std::shared_ptr<ClientState>& client : user.clients)
      if (client->account.waiting > 0 && (next == nullptr || rankOf(*client) < rankOf(*next)))
        next = client.get();
    return next;
  }
  User* nextUser() {
    User* next = nullptr;
    for (auto& [number, user] : users)
      if (user.account.waiting > 0 && (next == nullptr || rankOf(user) < rankOf(*next)))
        next = &user;
    return next;
  }

  void giveTurn() {
    User& user = *nextUser();
    ClientState& client = *nextClient(user);
    Waiter& waiter = **client.waiters.begin();
    client.waiters.erase(client.waiters.begin());
    level = std::max(level, user.account.used);
    user.level = std::max(user.level, client.account.used);
    // Charged in advance, so that a client does not get all turns of a device before one ends.
    waiter.expected = client.lastCost;
    client.account.begin(weighed(waiter.expected, waiter.priority));
    user.account.begin(waiter.expected);
    --waiting;
    ++running;
    waiter.outcome = Waiter::Outcome::kTurn;
    waiter.changed.notify_one();
  }
};

FairShare::Turn::Turn(std::shared_ptr<State> state, std::shared_ptr<ClientState> client,
                      hal::Priority priority, uint64_t expected)
    : state_(std::move(state)),
      client_(std::move(client)),
      priority_(priority),
      expected_(expected),
      begin_(std::chrono::steady_clock::now()) {}

FairShare::Turn::Turn(Turn&& other) noexcept
    : state_(std::move(other.state_)),
      client_(std::move(other.client_)),
      priority_(other.priority_),
      expected_(other.expected_),
      begin_(other.begin_) {}

FairShare::Turn& FairShare::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  end(std::chrono::steady_clock::now() - begin_);
  state_ = std::move(other.state_);
  client_ = std::move(other.client_);
  priority_ = other.priority_;
  expected_ = other.expected_;
  begin_ = other.begin_;
  return *this;
}

FairShare::Turn::~Turn() {
  end(std::chrono::steady_clock::now() - begin_);
}

void FairShare::Turn::end(std::chrono::nanoseconds cost) {
  if (state_ == nullptr) return;
  const std::shared_ptr<State> state = std::move(state_);
  const std::shared_ptr<ClientState> client = std::move(client_);
  const auto nanoseconds =
      static_cast<uint64_t>(std::clamp(cost, std::chrono::nanoseconds(0), kMostCost).count());
  const std::lock_guard lock(state->mutex);
  client->account.end(weighed(expected_, priority_), weighed(nanoseconds, priority_));
  client->lastCost = nanoseconds;
  state->users.at(client->user).account.end(expected_, nanoseconds);
  --state->running;
  if (client->isClosed) state->forgetUsers();
  state->giveTurns();
}

FairShare::Client::Client(std::shared_ptr<State> state, std::shared_ptr<ClientState> client)
    : state_(std::move(state)), client_(std::move(client)) {}

FairShare::Client& FairShare::Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  close();
  state_ = std::move(other.state_);
  client_ = std::move(other.client_);
  return *this;
}

FairShare::Client::~Client() {
  close();
}

Result<FairShare::Turn> FairShare::Client::take(hal::Priority priority, base::Deadline deadline) {
  std::unique_lock lock(state_->mutex);
  if (client_->isClosed)
    return fail(ErrorCode::kDeadObject, "The client that asks for a turn is closed.");
  if (deadline.hasPassed())
    return fail(ErrorCode::kMissedDeadlineTransient,
                "The deadline passed before a turn on the device was asked for.");
  Waiter waiter{.priority = priority, .number = state_->arrivals++};
  client_->waiters.insert(&waiter);
  State::User& user = state_->users.at(client_->user);
  client_->account.arrive(user.level);
  user.account.arrive(state_->level);
  ++state_->waiting;
  state_->giveTurns();
  const auto isDone = [&] {
    return waiter.outcome != Waiter::Outcome::kNone;
  };
  if (deadline.isNever()) {
    waiter.changed.wait(lock, isDone);
  } else {
    waiter.changed.wait_until(lock, deadline.when(), isDone);
  }
  switch (waiter.outcome) {
    case Waiter::Outcome::kTurn:
      return Turn(state_, client_, priority, waiter.expected);
    case Waiter::Outcome::kClosed:
      return fail(ErrorCode::kDeadObject, "The client was closed while it waited for a turn.");
    case Waiter::Outcome::kNone:
      break;
  }
  state_->leave(*client_, waiter);
  return fail(ErrorCode::kMissedDeadlineTransient,
              "The deadline passes while {} executions have the device and {} more wait for it.",
              state_->running, state_->waiting);
}

void FairShare::Client::close() {
  if (state_ == nullptr) return;
  const std::lock_guard lock(state_->mutex);
  if (!client_->isClosed) state_->removeClient(client_);
}

FairShare::FairShare(size_t turnsAtOnce)
    : state_(std::make_shared<State>(std::max<size_t>(turnsAtOnce, 1))) {}

FairShare::Client FairShare::addClient(uint32_t user) {
  auto client = std::make_shared<ClientState>(user);
  const std::lock_guard lock(state_->mutex);
  state_->forgetUsers();
  const auto [entry, isNew] = state_->users.try_emplace(user);
  if (isNew) entry->second.account.used = state_->level;
  client->account.used = entry->second.level;
  entry->second.clients.insert(client);
  return Client(state_, std::move(client));
}

size_t FairShare::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting;
}

size_t FairShare::running() const {
  const std::lock_guard lock(state_->mutex);
  return state_->running;
}

}  // namespace hearth::ipc
