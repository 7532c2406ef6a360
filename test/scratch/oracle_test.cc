// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every short sequence of operations on a few streams and one or two blocks, against an oracle that knows nothing of
// tags and sync ids. It draws what was issued as a graph (a node for each use of a block, record, wait and wait of the
// host; an edge for what must come before what) and for each question searches the graph anew: a stream may have a free
// block when every use that the block ever had leads to the stream's next work, and a request for no stream when all of
// them are over. What such a request got may have been used anywhere: the arena then has to wait for the device, after
// which everybody may have it. Here it does so when nothing else is left, so it must find the memory. A block of a
// reservation is its stream's alone while that is open, and nobody's when it is closed. Memory is limited to just the
// blocks, so each request shows what the arena thinks. A block given too early is a failure, and one withheld
// needlessly too.
//
// A prefix is a sequence too, so only those of full length are counted. Left out is what would only repeat others:
//   - streams are alike, so they are numbered as they first appear;
//   - a record or wait next to one of other streams comes after it as well as before, so one order is enough;
//   - nothing is done twice in a row, where the second time changes nothing.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kMaxStreams = 3;
constexpr int kMaxBlocks = 2;
constexpr int kNobody = -1;
constexpr int kNoStream = -2;  // the owner of what was allocated for none
constexpr size_t kBlockBytes = kGranule;

// --- Operations -----------------------------------------------------------------------------------------------------

enum class Kind {
  kAlloc,                 // one block
  kAllocAll,              // all of the memory at once
  kAllocForNobody,        // one block, for no stream
  kFree,                  // what was handed out longest ago, or with `stream` 1 the next
  kRecord,                // the stream's notification
  kWait,                  // `stream` waits for `other`'s notification
  kWaitOnHost,            // for the stream's notification
  kSynchronize,           //
  kEndRun,                // with a synchronisation
  kEndRunWithoutWaiting,  //
  kForget,
  kOpen,     // the stream's reservation; it has one at a time
  kClose,    //
  kRelease,  //
};

struct Operation {
  Kind kind;
  int stream;
  int other = kNobody;

  bool operator==(const Operation& o) const { return kind == o.kind && stream == o.stream && other == o.other; }
  bool operator<(const Operation& o) const {
    if (kind != o.kind) return kind < o.kind;
    return stream != o.stream ? stream < o.stream : other < o.other;
  }
};

std::string Name(int stream) { return std::string(1, static_cast<char>('a' + stream)); }

std::string ToString(const Operation& operation) {
  const std::string s = Name(operation.stream);
  switch (operation.kind) {
    case Kind::kAlloc: return s + " allocates";
    case Kind::kAllocAll: return s + " allocates all";
    case Kind::kAllocForNobody: return "allocate for no stream";
    case Kind::kFree: return operation.stream == 0 ? "free the oldest" : "free the second";
    case Kind::kRecord: return s + " records";
    case Kind::kWait: return s + " waits for " + Name(operation.other);
    case Kind::kWaitOnHost: return "the host waits for what " + s + " recorded";
    case Kind::kSynchronize: return "synchronise " + s;
    case Kind::kEndRun: return s + " ends its run, synchronised";
    case Kind::kEndRunWithoutWaiting: return s + " ends its run";
    case Kind::kForget: return "forget " + s;
    case Kind::kOpen: return s + " opens a reservation";
    case Kind::kClose: return s + " closes it";
    case Kind::kRelease: return s + " releases it";
  }
  return "";
}

std::string ToString(const std::vector<Operation>& sequence) {
  std::string text;
  for (const Operation& operation : sequence) text += (text.empty() ? "" : "; ") + ToString(operation);
  return text;
}

// --- The oracle -----------------------------------------------------------------------------------------------------

// What was issued. A node is work of a stream, or a wait of the host.
class History {
 public:
  using Nodes = uint64_t;  // a set, bit i for node i

  // Work given to the stream now. It comes after the stream's work before, and after what the host has waited for.
  int Issue(int stream) { return last_[stream] = Add(Bit(last_[stream]) | Bit(last_of_host_)); }
  void Order(int before, int after) { before_[after] |= Bit(before); }
  int Record(int stream) { return recorded_[stream] = Issue(stream); }
  void Wait(int consumer, int producer) { Order(recorded_[producer], Issue(consumer)); }
  void WaitOnHost(int stream) { last_of_host_ = Add(Bit(last_of_host_) | Bit(recorded_[stream])); }
  void Synchronize(int stream) { last_of_host_ = Add(Bit(last_of_host_) | Bit(last_[stream])); }

  bool HasRecorded(int stream) const { return recorded_[stream] != kNobody; }
  // Whether all of the nodes come before whatever the stream is given next.
  bool ComeBeforeNextOf(int stream, Nodes nodes) const {
    return (nodes & ~AllBefore(Bit(last_[stream]) | Bit(last_of_host_))) == 0;
  }
  // Whether the host knows that all of them are over.
  bool AreOver(Nodes nodes) const { return (nodes & ~AllBefore(Bit(last_of_host_))) == 0; }
  static Nodes Bit(int node) { return node == kNobody ? 0 : Nodes{1} << node; }

 private:
  int Add(Nodes before) {
    EXPECT_LT(num_nodes_, 64);
    before_[num_nodes_] = before;
    return num_nodes_++;
  }
  // The nodes, and all from which one of them can be reached.
  Nodes AllBefore(Nodes nodes) const {
    Nodes found = nodes;
    for (Nodes left = nodes; left != 0;) {
      const Nodes more = before_[__builtin_ctzll(left)] & ~found;
      left = (left & (left - 1)) | more;
      found |= more;
    }
    return found;
  }

  int num_nodes_ = 0;
  std::array<Nodes, 64> before_ = {};  // direct predecessors
  std::array<int, kMaxStreams> last_ = {kNobody, kNobody, kNobody};
  std::array<int, kMaxStreams> recorded_ = {kNobody, kNobody, kNobody};
  int last_of_host_ = kNobody;
};

struct Block {
  int owner = kNobody;       // of a live one
  int last_user = kNobody;   // of a free one
  int keeper = kNobody;      // the stream whose reservation has it
  History::Nodes uses = 0;   // all that it ever had
  History::Nodes joins = 0;  // see Oracle::NoteJoins
};

struct Oracle {
  History history;
  std::array<Block, kMaxBlocks> blocks;
  std::array<bool, kMaxStreams> is_reserving = {}, is_open = {};

  bool MayHave(int stream, int block) const {
    if (blocks[block].owner != kNobody) return false;
    if (blocks[block].keeper != kNobody) return blocks[block].keeper == stream && is_open[stream];
    return history.ComeBeforeNextOf(stream, blocks[block].uses);
  }
  bool MustHave(int stream, int block) const {
    if (!MayHave(stream, block)) return false;
    return blocks[block].keeper != kNobody || history.ComeBeforeNextOf(stream, blocks[block].joins);
  }
  bool MayHaveForNobody(int block) const { return IsOfArena(block) && history.AreOver(blocks[block].uses); }
  bool MustHaveForNobody(int block) const { return MayHaveForNobody(block) && history.AreOver(blocks[block].joins); }
  bool MayForget(int stream) const { return IsFree(stream) && history.AreOver(UsesBy(stream, false)); }
  bool MustForget(int stream) const { return IsFree(stream) && history.AreOver(UsesBy(stream, true)); }

  // The one thing in which the arena is more careful than it need be: free neighbours that the same stream used last
  // are one block, which has one tag, so both count as used when the later one was, and go on to do so when the block
  // is cut again. Two tags would keep them apart for ever, and cost a request for both more than it gains another
  // stream. When they are joined is the arena's to choose, so until then both answers are right.
  void NoteJoins() {
    if (!IsOfArena(0) || !IsOfArena(1)) return;
    if (blocks[0].last_user == kNobody || blocks[0].last_user != blocks[1].last_user) return;
    const History::Nodes all = blocks[0].uses | blocks[0].joins | blocks[1].uses | blocks[1].joins;
    blocks[0].joins = blocks[1].joins = all;
  }

 private:
  bool IsOfArena(int block) const { return blocks[block].owner == kNobody && blocks[block].keeper == kNobody; }
  bool IsFree(int stream) const {
    if (is_reserving[stream]) return false;
    for (const Block& block : blocks) {
      if (block.owner == stream) return false;
    }
    return true;
  }
  History::Nodes UsesBy(int stream, bool with_joins) const {
    History::Nodes uses = 0;
    for (const Block& block : blocks) {
      if (block.owner == kNobody && block.last_user == stream) uses |= block.uses | (with_joins ? block.joins : 0);
    }
    return uses;
  }
};

// --- The test -------------------------------------------------------------------------------------------------------

enum class Extra {
  kNone,          // only the operations without which nothing moves
  kAllOfStreams,  // all that a stream can be asked
  kForNobody,     // requests for no stream
  kReservations,
};

struct Configuration {
  const char* name;
  int num_streams;
  int num_blocks;
  bool apart;  // a live block between the two, so that they are never joined
  Extra extra;
  size_t length;  // of the sequences
};

void PrintTo(const Configuration& configuration, std::ostream* out) { *out << configuration.name; }

class ScratchOracle : public DeviceTest, public ::testing::WithParamInterface<Configuration> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_stream_create(0, &wall_stream_));
    for (int i = 0; i < config_.num_streams; ++i) {
      GCAP_ASSERT_OK(gcap_stream_create(0, &streams_[i]));
      GCAP_ASSERT_OK(gcap_notification_create(streams_[i], &notifications_[i]));
    }
    // All of the memory, as one region.
    const size_t num_places = static_cast<size_t>(config_.num_blocks + (config_.apart ? 1 : 0));
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = options.memory_limit_bytes = num_places * kBlockBytes;
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), &options, &scratch_));
    std::array<void*, kMaxBlocks + 1> places = {};
    for (size_t i = 0; i < num_places; ++i) {
      GCAP_ASSERT_OK(gcap_scratch_alloc(scratch_, kBlockBytes, wall_stream_, &places[i]));
    }
    for (size_t i = 0; i < num_places; ++i) {
      if (config_.apart && i == 1) continue;
      addresses_.push_back(places[i]);
      GCAP_ASSERT_OK(gcap_scratch_free(scratch_, places[i]));
    }
    wall_ = config_.apart ? places[1] : nullptr;
    GCAP_ASSERT_OK(gcap_stream_synchronize(wall_stream_));
    if (!config_.apart) GCAP_ASSERT_OK(gcap_scratch_forget_stream(scratch_, wall_stream_));
  }
  void TearDown() override {
    if (scratch_ != nullptr) {
      Reset();
      GCAP_EXPECT_OK(gcap_scratch_free(scratch_, wall_));
      GCAP_EXPECT_OK(gcap_stream_synchronize(wall_stream_));
    }
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    for (gcap_notification_t* notification : notifications_) gcap_notification_destroy(notification);
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    GCAP_EXPECT_OK(gcap_stream_destroy(wall_stream_));
  }

  // Nothing is handed out, nobody used anything.
  void Reset() {
    for (const HandedOut& live : live_) GCAP_ASSERT_OK(gcap_scratch_free(scratch_, addresses_[live.first]));
    live_.clear();
    for (int i = 0; i < config_.num_streams; ++i) {
      if (oracle_.is_reserving[i]) gcap_scratch_reservation_release(reservations_[i]);
      GCAP_ASSERT_OK(gcap_stream_synchronize(streams_[i]));
      GCAP_ASSERT_OK(gcap_scratch_forget_stream(scratch_, streams_[i]));
      sync_ids_[i] = gcap_stream_sync_id(streams_[i]);
    }
    oracle_ = Oracle();
  }

  struct HandedOut {
    int first, last;  // blocks
  };

  // --- Which operations come next

  bool MentionsInOrder(const Operation& operation) const {
    if (!NamesAStream(operation)) return true;
    int num_known = 0;
    for (const Operation& before : sequence_) {
      if (NamesAStream(before)) num_known = std::max({num_known, before.stream + 1, before.other + 1});
    }
    return operation.stream <= num_known;
  }
  static bool OnlyOrdersStreams(const Operation& operation) {
    return operation.kind == Kind::kRecord || operation.kind == Kind::kWait;
  }
  static bool ShareAStream(const Operation& a, const Operation& b) {
    return a.stream == b.stream || a.stream == b.other || a.other == b.stream ||
           (a.other != kNobody && a.other == b.other);
  }
  static bool IsAllocOfOne(const Operation& operation) {
    return operation.kind == Kind::kAlloc || operation.kind == Kind::kAllocForNobody;
  }
  bool IsRepetition(const Operation& operation) const {
    // At first nothing was used, so nothing else matters.
    if (sequence_.empty()) return !IsAllocOfOne(operation) && operation.kind != Kind::kOpen;
    const Operation& last = sequence_.back();
    if (operation == last && operation.kind != Kind::kFree && !IsAllocOfOne(operation)) return true;
    return OnlyOrdersStreams(operation) && OnlyOrdersStreams(last) && !ShareAStream(operation, last) &&
           operation < last;
  }
  static bool IsQuestion(const Operation& operation) {
    return operation.kind == Kind::kAlloc || operation.kind == Kind::kAllocAll ||
           operation.kind == Kind::kAllocForNobody || operation.kind == Kind::kForget;
  }
  static bool NamesAStream(const Operation& operation) {
    return operation.kind != Kind::kFree && operation.kind != Kind::kAllocForNobody;
  }
  bool AnyIsFree() const {
    const auto end = oracle_.blocks.begin() + config_.num_blocks;
    return std::any_of(oracle_.blocks.begin(), end, [](const Block& block) { return block.owner == kNobody; });
  }
  void AddForReservation(int stream, std::vector<Operation>* operations) const {
    if (!oracle_.is_reserving[stream]) operations->push_back({Kind::kOpen, stream});
    if (oracle_.is_open[stream]) operations->push_back({Kind::kClose, stream});
    if (oracle_.is_reserving[stream]) operations->push_back({Kind::kRelease, stream});
  }
  void AddForStream(int stream, std::vector<Operation>* operations) const {
    const bool all_free = live_.empty();
    if (AnyIsFree()) operations->push_back({Kind::kAlloc, stream});
    if (all_free && config_.num_blocks > 1 && !config_.apart) operations->push_back({Kind::kAllocAll, stream});
    operations->push_back({Kind::kRecord, stream});
    for (int other = 0; other < config_.num_streams; ++other) {
      if (other != stream && oracle_.history.HasRecorded(other)) operations->push_back({Kind::kWait, stream, other});
    }
    operations->push_back({Kind::kSynchronize, stream});
    if (config_.extra == Extra::kReservations) AddForReservation(stream, operations);
    if (config_.extra != Extra::kAllOfStreams) return;
    if (oracle_.history.HasRecorded(stream)) operations->push_back({Kind::kWaitOnHost, stream});
    operations->push_back({Kind::kEndRun, stream});
    operations->push_back({Kind::kEndRunWithoutWaiting, stream});
    operations->push_back({Kind::kForget, stream});
  }
  std::vector<Operation> NextOperations() const {
    std::vector<Operation> all, next;
    for (int stream = 0; stream < config_.num_streams; ++stream) AddForStream(stream, &all);
    if (config_.extra == Extra::kForNobody && AnyIsFree()) all.push_back({Kind::kAllocForNobody, 0});
    for (size_t i = 0; i < live_.size(); ++i) all.push_back({Kind::kFree, static_cast<int>(i)});
    const bool is_last = sequence_.size() + 1 == Length();
    for (const Operation& operation : all) {
      if (is_last && !IsQuestion(operation)) continue;
      if (MentionsInOrder(operation) && !IsRepetition(operation)) next.push_back(operation);
    }
    return next;
  }

  // --- Doing them

  int BlockAt(const void* ptr) const {
    for (int i = 0; i < config_.num_blocks; ++i) {
      if (addresses_[i] == ptr) return i;
    }
    return kNobody;
  }
  void HandOut(const HandedOut& handed_out, int stream) {
    for (int i = handed_out.first; i <= handed_out.last; ++i) {
      oracle_.blocks[i].owner = stream;
      if (stream != kNoStream && oracle_.is_open[stream]) oracle_.blocks[i].keeper = stream;
      oracle_.blocks[i].joins = 0;
    }
    live_.push_back(handed_out);
  }
  void Alloc(int stream) {
    bool must = false;
    for (int i = 0; i < config_.num_blocks; ++i) must = must || oracle_.MustHave(stream, i);
    void* ptr = nullptr;
    const Outcome outcome(gcap_scratch_alloc(scratch_, kBlockBytes, streams_[stream], &ptr));
    if (outcome.ok()) {
      const int block = BlockAt(ptr);
      ASSERT_NE(block, kNobody) << "neither of the blocks";
      ASSERT_TRUE(oracle_.MayHave(stream, block)) << "block " << block << " was given too early";
      HandOut({block, block}, stream);
      return;
    }
    ASSERT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    ASSERT_FALSE(must) << "a block was withheld";
  }
  void AllocForNobody() {
    bool must = false;
    for (int i = 0; i < config_.num_blocks; ++i) must = must || oracle_.MustHaveForNobody(i);
    void* ptr = nullptr;
    const Outcome outcome(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), kBlockBytes, &ptr));
    if (outcome.ok()) {
      const int block = BlockAt(ptr);
      ASSERT_NE(block, kNobody) << "neither of the blocks";
      ASSERT_TRUE(oracle_.MayHaveForNobody(block)) << "block " << block << " was given too early";
      HandOut({block, block}, kNoStream);
      return;
    }
    ASSERT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    ASSERT_FALSE(must) << "a block was withheld";
  }
  void AllocAll(int stream) {
    const bool may = oracle_.MayHave(stream, 0) && oracle_.MayHave(stream, 1);
    void* ptr = nullptr;
    const Outcome outcome(gcap_scratch_alloc(scratch_, 2 * kBlockBytes, streams_[stream], &ptr));
    ASSERT_EQ(outcome.code, may ? GCAP_OK : GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    if (!may) return;
    ASSERT_EQ(ptr, addresses_[0]);
    HandOut({0, 1}, stream);
  }
  // The last moment at which the owner may have used the block.
  void Free(int age) {
    const HandedOut freed = live_[age];
    live_.erase(live_.begin() + age);
    GCAP_ASSERT_OK(gcap_scratch_free(scratch_, addresses_[freed.first]));
    const int owner = oracle_.blocks[freed.first].owner;
    // For nobody there is no node, since the wait for the device covers it whenever it is asked for.
    const int use = owner == kNoStream ? kNobody : oracle_.history.Issue(owner);
    for (int i = freed.first; i <= freed.last; ++i) {
      oracle_.blocks[i].owner = kNobody;
      oracle_.blocks[i].last_user = owner == kNoStream ? kNobody : owner;
      oracle_.blocks[i].uses |= History::Bit(use);
      if (owner != kNoStream && oracle_.is_open[owner]) oracle_.blocks[i].keeper = owner;
    }
    if (!config_.apart) oracle_.NoteJoins();
  }
  // A replay may have used what it had until now. What is still handed out is like any other block from now on.
  void Release(int stream) {
    gcap_scratch_reservation_release(reservations_[stream]);
    oracle_.is_reserving[stream] = oracle_.is_open[stream] = false;
    const int use = oracle_.history.Issue(stream);
    for (Block& block : oracle_.blocks) {
      if (block.keeper != stream) continue;
      block.keeper = kNobody;
      if (block.owner == kNobody) block.uses |= History::Bit(use);
    }
    if (!config_.apart) oracle_.NoteJoins();
  }
  void Forget(int stream) {
    const Outcome outcome(gcap_scratch_forget_stream(scratch_, streams_[stream]));
    ASSERT_TRUE(outcome.ok() || outcome.code == GCAP_FAILED_PRECONDITION) << outcome.message;
    if (outcome.ok()) {
      ASSERT_TRUE(oracle_.MayForget(stream)) << "forgotten too early";
    } else {
      ASSERT_FALSE(oracle_.MustForget(stream)) << outcome.message;
    }
  }
  void Do(const Operation& operation) {
    const int s = operation.stream;
    switch (operation.kind) {
      case Kind::kAlloc: Alloc(s); break;
      case Kind::kAllocAll: AllocAll(s); break;
      case Kind::kAllocForNobody: AllocForNobody(); break;
      case Kind::kFree: Free(s); break;
      case Kind::kRecord:
        GCAP_ASSERT_OK(gcap_notification_record(notifications_[s]));
        oracle_.history.Record(s);
        ++sync_ids_[s];
        break;
      case Kind::kWait:
        GCAP_ASSERT_OK(gcap_notification_wait(notifications_[operation.other], streams_[s]));
        oracle_.history.Wait(s, operation.other);
        break;
      case Kind::kWaitOnHost:
        GCAP_ASSERT_OK(gcap_notification_wait_on_host(notifications_[s]));
        oracle_.history.WaitOnHost(s);
        break;
      case Kind::kSynchronize: GCAP_ASSERT_OK(gcap_stream_synchronize(streams_[s])); break;
      case Kind::kEndRun: GCAP_ASSERT_OK(gcap_stream_end_run(streams_[s], /*synchronize=*/true)); break;
      case Kind::kEndRunWithoutWaiting:
        GCAP_ASSERT_OK(gcap_stream_end_run(streams_[s], /*synchronize=*/false));
        ASSERT_EQ(gcap_stream_sync_id(streams_[s]), sync_ids_[s]) << "nothing was synchronised";
        break;
      case Kind::kForget: Forget(s); break;
      case Kind::kOpen:
        GCAP_ASSERT_OK(gcap_scratch_reservation_open(scratch_, streams_[s], &reservations_[s]));
        oracle_.is_reserving[s] = oracle_.is_open[s] = true;
        break;
      case Kind::kClose:
        gcap_scratch_reservation_close(reservations_[s]);
        oracle_.is_open[s] = false;
        break;
      case Kind::kRelease: Release(s); break;
    }
    NoteSynchronisations();
  }
  // Those that were asked for, and those by which the arena itself tried to find memory.
  void NoteSynchronisations() {
    for (int i = 0; i < config_.num_streams; ++i) {
      const uint64_t sync_id = gcap_stream_sync_id(streams_[i]);
      if (sync_id != sync_ids_[i]) oracle_.history.Synchronize(i);
      sync_ids_[i] = sync_id;
    }
  }

  // A sanitizer looks at the code, which shorter sequences run through as well.
  size_t Length() const {
#if defined(__SANITIZE_ADDRESS__)
    return config_.length - 1;
#else
    return config_.length;
#endif
  }
  // Runs all that begin with the sequence of now, which was just done.
  void Explore() {
    if (sequence_.size() == Length()) {
      ++num_sequences_;
      return;
    }
    bool is_here = true;
    for (const Operation& operation : NextOperations()) {
      if (!is_here) {
        Reset();
        for (const Operation& before : sequence_) Do(before);
      }
      is_here = false;
      sequence_.push_back(operation);
      Do(operation);
      if (!HasFailure()) Explore();
      if (HasFailure()) return;
      sequence_.pop_back();
    }
  }

  const Configuration config_ = GetParam();
  Upstream upstream_;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* wall_stream_ = nullptr;
  std::array<gcap_stream_t*, kMaxStreams> streams_ = {};
  std::array<gcap_notification_t*, kMaxStreams> notifications_ = {};
  std::array<gcap_scratch_reservation_t*, kMaxStreams> reservations_ = {};
  std::vector<void*> addresses_;
  void* wall_ = nullptr;

  const LogCatcher log_;  // that what a reservation lacked cannot be made up is no news here
  std::vector<Operation> sequence_;
  Oracle oracle_;
  std::vector<HandedOut> live_;  // oldest first
  std::array<uint64_t, kMaxStreams> sync_ids_ = {};
  uint64_t num_sequences_ = 0;
};

// The lengths are the longest for which all configurations together take a few seconds. For memory to go from a first
// stream by way of a second to a third takes seven.
constexpr Configuration kConfigurations[] = {
    {"TwoStreamsOneBlockAllOperations", 2, 1, false, Extra::kAllOfStreams, 6},
    {"TwoStreamsOneBlock", 2, 1, false, Extra::kNone, 8},
    {"TwoStreamsTwoBlocksApart", 2, 2, true, Extra::kNone, 7},
    {"TwoStreamsTwoBlocksSideBySide", 2, 2, false, Extra::kNone, 7},
    {"TwoStreamsAndNobodyOneBlock", 2, 1, false, Extra::kForNobody, 7},
    {"TwoStreamsAndNobodyTwoBlocksApart", 2, 2, true, Extra::kForNobody, 6},
    {"TwoStreamsAndNobodyTwoBlocksSideBySide", 2, 2, false, Extra::kForNobody, 6},
    {"TwoStreamsReservingOneBlock", 2, 1, false, Extra::kReservations, 6},
    {"TwoStreamsReservingTwoBlocksApart", 2, 2, true, Extra::kReservations, 6},
    {"TwoStreamsReservingTwoBlocksSideBySide", 2, 2, false, Extra::kReservations, 6},
    {"ThreeStreamsOneBlockAllOperations", 3, 1, false, Extra::kAllOfStreams, 5},
    {"ThreeStreamsOneBlock", 3, 1, false, Extra::kNone, 7},
    {"ThreeStreamsTwoBlocksApart", 3, 2, true, Extra::kNone, 6},
    {"ThreeStreamsTwoBlocksSideBySide", 3, 2, false, Extra::kNone, 6},
};

INSTANTIATE_TEST_SUITE_P(Of, ScratchOracle, ::testing::ValuesIn(kConfigurations),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ScratchOracle, AgreesOnEverySequence) {
  Explore();
  std::cout << num_sequences_ << " sequences of " << Length() << " operations\n";
  EXPECT_FALSE(HasFailure()) << "after: " << ToString(sequence_);
  EXPECT_GT(num_sequences_, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
