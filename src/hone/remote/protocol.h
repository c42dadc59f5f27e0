// remote/protocol.h - the messages between a tuner and a server that measures for it elsewhere
// (docs/formats/remote.md). A message is a byte that says its kind, then the fields of its struct
// in the order of their declaration, as base/wire.h writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/measure/host_load.h"
#include "hone/measure/operands.h"
#include "hone/target/target.h"

namespace hone::remote {

// Raised by each change of these messages. What a job and its answer look like has a version of its
// own (wire::kProtocolVersion); peers need the same of both.
inline constexpr uint32_t kVersion = 2;

inline constexpr int64_t kMostBytes = int64_t{64} << 20;  // limit of a message
inline constexpr int64_t kPieceBytes = int64_t{1} << 20;  // operands travel in pieces of this size
// A tuner has at most so many jobs at the server, so that the next one is there when one ends.
inline constexpr size_t kMostJobs = 4;
// The most seconds that work of a tuner waits at a server for its turn: 31 others may have a job
// before it.
inline constexpr double kMostQueueSeconds = 900;

enum class Kind : uint8_t {
  kHello = 1,        // to the server, first of all
  kWelcome = 2,      // its answer
  kRefusal = 3,      // from the server, instead of any other message; the connection ends
  kOffer = 4,        // to the server: operands that the following jobs have
  kHeld = 5,         // its answer: how much of them it holds
  kPiece = 6,        // to the server: a part of the operands offered
  kJob = 7,          // to the server
  kStarted = 8,      // from the server: it measures this job from now on
  kResult = 9,       // from the server: the measurement of a job
  kCancel = 10,      // to the server: jobs that are not wanted any more
  kQuestion = 11,    // to the server
  kAnswer = 12,      // its answer
  kModelCall = 13,   // to the server: what to do with a model
  kModelReply = 14,  // its answer
};

// The hash of operands: of their layout and of their contents.
struct Digest {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

struct Hello {
  uint32_t version = kVersion;
  uint32_t job_version = 0;
  std::string hone;       // the version of Hone, for messages
  std::string session;    // random; a connection that was lost resumes under the same name
  uint64_t answered = 0;  // the last job whose result has arrived
};

struct Welcome {
  uint32_t version = kVersion;
  uint32_t job_version = 0;
  std::string hone;
  std::string instance;       // random; another one after the server was started again
  std::string boot;           // the system's name for the time since it was started
  int64_t operand_bytes = 0;  // the size of the cache of operands
  uint64_t last_job = 0;      // the last job of this session that has arrived
  target::Target target;      // the machine; a CPU
};

struct Offer {
  Digest digest;
  measure::OperandLayout layout;
};

struct Held {
  Digest digest;
  int64_t bytes = 0;    // from the beginning of the memory
  std::string problem;  // if it is not empty, jobs with these operands cannot run
};

struct Piece {
  Digest digest;
  int64_t offset = 0;
  std::string bytes;
};

struct JobText {
  uint64_t sequence = 0;  // numbered in the session: 1, 2, 3, ...
  double timeout_seconds = 0;
  std::string job;  // measure::encode_job()
};

struct Started {
  uint64_t sequence = 0;
};

struct ResultText {
  uint64_t sequence = 0;
  std::string measurement;  // measure::encode()
};

struct Cancel {
  uint64_t sequence = 0;  // this job and those before it
};

enum class What : uint8_t {
  kLoad,     // measure::sample_machine()
  kCores,    // measure::look_at_threads(argument)()
  kInCache,  // measure::stays_in_cache(argument)
};
inline constexpr int kWhats = 3;

struct Question {
  uint64_t id = 0;
  What what = What::kLoad;
  int64_t argument = 0;
};

// Fields that the question did not ask for are zeros.
struct Answer {
  uint64_t id = 0;
  bool known = false;
  measure::HostMonitor::Sample load;
  double slowdown = 1, exchange = 0;
  bool in_cache = false;
};

enum class ModelFunction : uint8_t {
  kLoad,      // loads the library that was offered last, in place of another one
  kSetShape,  // sets the shape of an input
  kShape,     // asks for that of an input or output in the next run
  kRun,       // runs on the inputs that were offered last
  kFetch,     // asks for a part of the outputs of the last run
};
inline constexpr int kModelFunctions = 5;

// Arguments and answers are in model_messages.h.
struct ModelCall {
  uint64_t id = 0;
  ModelFunction function = ModelFunction::kLoad;
  double timeout_seconds = 0;
  std::string body;
};

struct ModelReply {
  uint64_t id = 0;
  Code code = Code::kOk;
  std::string problem;  // if the code is another one
  std::string body;
};

[[nodiscard]] std::string encode(const Hello& message);
[[nodiscard]] std::string encode(const Welcome& message);
[[nodiscard]] std::string encode_refusal(std::string_view text);
[[nodiscard]] std::string encode(const Offer& message);
[[nodiscard]] std::string encode(const Held& message);
[[nodiscard]] std::string encode(const Piece& message);
[[nodiscard]] std::string encode(const JobText& message);
[[nodiscard]] std::string encode(const Started& message);
[[nodiscard]] std::string encode(const ResultText& message);
[[nodiscard]] std::string encode(const Cancel& message);
[[nodiscard]] std::string encode(const Question& message);
[[nodiscard]] std::string encode(const Answer& message);
[[nodiscard]] std::string encode(const ModelCall& message);
[[nodiscard]] std::string encode(const ModelReply& message);

// Returns the kind of a message; an error if it is none.
[[nodiscard]] Result<Kind> kind_of(std::string_view message);

// Decodes a message of the struct's kind. The error says what is wrong with it. Only Hello and
// Welcome are decoded without their fields behind the versions if the versions differ.
template <typename T>
[[nodiscard]] Result<T> decode(std::string_view message);
[[nodiscard]] Result<std::string> decode_refusal(std::string_view message);

// Checks that an offer's entries lie within its bytes and each output that is expected is one, so
// that a worker can be given it.
[[nodiscard]] Status check_layout(const measure::OperandLayout& layout);

}  // namespace hone::remote
