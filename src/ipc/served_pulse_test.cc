// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_pulse.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/descriptor.h"
#include "ipc/host_pulse.h"
#include "ipc/pulse.h"

namespace hearth::ipc {
namespace {

std::pair<base::Descriptor, base::Descriptor> pairOfSockets() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

TEST(ServedPulseTest, AnswersWithTheStepsThatHaveBegun) {
  auto [own, ofHost] = pairOfSockets();
  ServedPulse served;
  EXPECT_EQ(served.socket(), -1);
  served.answer();
  served.connect(std::move(ofHost));
  EXPECT_NE(served.socket(), -1);
  HostPulse pulse(std::move(own));
  EXPECT_EQ(pulse.look().silence.count(), 0);
  // The question is open.
  EXPECT_GT(pulse.look().silence.count(), 0);
  served.begins(0, 2);
  served.begins(1, 2);
  served.answer();
  EXPECT_EQ(pulse.look().silence.count(), 0);
  EXPECT_GT(pulse.look().silence.count(), 0);
  served.begins(0, 1);
  served.answer();
  const HostPulse::Beat beat = pulse.look();
  EXPECT_EQ(beat.silence.count(), 0);
  EXPECT_EQ(beat.steps, 3u);
}

TEST(ServedPulseTest, OnlyTheAnswerToTheLastQuestionCounts) {
  auto [own, ofHost] = pairOfSockets();
  HostPulse pulse(std::move(own));
  pulse.look();
  PulseQuestion question;
  ASSERT_EQ(::recv(ofHost.get(), &question, sizeof question, 0), ssize_t{sizeof question});
  const PulseAnswer wrong{question.number + 1, 7};
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(::send(ofHost.get(), &wrong, sizeof wrong, 0), ssize_t{sizeof wrong});
  ASSERT_EQ(::send(ofHost.get(), "short", 5, 0), 5);
  for (int i = 0; i < 5; ++i) EXPECT_GT(pulse.look().silence.count(), 0);
  EXPECT_EQ(pulse.look().steps, 0u);
  // A host that is gone is silent.
  ofHost.reset();
  EXPECT_GT(pulse.look().silence.count(), 0);
}

TEST(ServedPulseTest, AClientThatDoesNotKeepToTheProtocolHasNoPulse) {
  {
    auto [own, ofHost] = pairOfSockets();
    ServedPulse served;
    served.connect(std::move(ofHost));
    ASSERT_EQ(::send(own.get(), "a", 1, 0), 1);
    served.answer();
    EXPECT_EQ(served.socket(), -1);
  }
  {
    auto [own, ofHost] = pairOfSockets();
    ServedPulse served;
    served.connect(std::move(ofHost));
    own.reset();
    served.answer();
    EXPECT_EQ(served.socket(), -1);
  }
  {
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const base::Descriptor written(ends[1]);
    ServedPulse served;
    served.connect(base::Descriptor(ends[0]));
    served.answer();
    EXPECT_EQ(served.socket(), -1);
  }
}

// It reads no answers.
TEST(ServedPulseTest, AClientThatAsksWithoutEndHoldsNobodyUp) {
  auto [own, ofHost] = pairOfSockets();
  ServedPulse served;
  served.connect(std::move(ofHost));
  for (int i = 0; i < 100000 && served.socket() != -1; ++i) {
    const PulseQuestion question{1};
    static_cast<void>(::send(own.get(), &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL));
    served.answer();
  }
  EXPECT_EQ(served.socket(), -1);
}

}  // namespace
}  // namespace hearth::ipc
