#include "hone/remote/protocol.h"

#include <algorithm>
#include <cmath>

#include "hone/base/wire.h"
#include "hone/remote/message_fields.h"

namespace hone::remote {

// Each message names its fields once, for writing and for reading.
static void fields(auto& a, Is<target::Cache> auto& m) {
  a(m.level, m.bytes, m.line_bytes, m.shared_by, m.bytes_per_cycle);
}
static void fields(auto& a, Is<target::Cpu> auto& m) {
  a(m.triple, m.model, m.features, m.vector_bytes, m.vector_registers, m.masked_memory,
    m.broadcast_operand, m.fma_per_cycle, m.fma_latency, m.loads_per_cycle, m.cores, m.ghz,
    m.caches, m.memory_bytes_per_cycle);
}
static void fields(auto& a, Is<measure::OperandLayout::Entry> auto& m) {
  a(m.role, m.bytes, m.offset);
}
static void fields(auto& a, Is<measure::OperandLayout::ExpectedEntry> auto& m) {
  a(m.operand, m.dtype, m.num_places, m.places_offset, m.num_values, m.values_offset);
}
static void fields(auto& a, Is<measure::OperandLayout> auto& m) {
  a(m.entries, m.expected, m.total_bytes);
}
static void fields(auto& a, Is<measure::HostMonitor::Sample> auto& m) {
  a(m.average, m.cpu.total, m.cpu.idle, m.cpu.steal, m.own);
}
static void fields(auto& a, Is<Hello> auto& m) {
  a(m.version, m.job_version, m.hone);
  if (a.is_of_other_version(m.version, m.job_version)) return;
  a(m.session, m.answered);
}
static void fields(auto& a, Is<Welcome> auto& m) {
  a(m.version, m.job_version, m.hone);
  if (a.is_of_other_version(m.version, m.job_version)) return;
  a(m.instance, m.boot, m.operand_bytes, m.last_job, m.target.name, m.target.cpu());
}
static void fields(auto& a, Is<Offer> auto& m) { a(m.digest, m.layout); }
static void fields(auto& a, Is<Held> auto& m) { a(m.digest, m.bytes, m.problem); }
static void fields(auto& a, Is<Piece> auto& m) { a(m.digest, m.offset, m.bytes); }
static void fields(auto& a, Is<JobText> auto& m) { a(m.sequence, m.timeout_seconds, m.job); }
static void fields(auto& a, Is<Started> auto& m) { a(m.sequence); }
static void fields(auto& a, Is<ResultText> auto& m) { a(m.sequence, m.measurement); }
static void fields(auto& a, Is<Cancel> auto& m) { a(m.sequence); }
static void fields(auto& a, Is<Question> auto& m) { a(m.id, m.what, m.argument); }
static void fields(auto& a, Is<Answer> auto& m) {
  a(m.id, m.known, m.load, m.slowdown, m.exchange, m.in_cache);
}
static void fields(auto& a, Is<ModelCall> auto& m) {
  a(m.id, m.function, m.timeout_seconds, m.body);
}
static void fields(auto& a, Is<ModelReply> auto& m) { a(m.id, m.code, m.problem, m.body); }

namespace {

template <typename T>
constexpr Kind kKindOf = Kind::kRefusal;
template <>
constexpr Kind kKindOf<Hello> = Kind::kHello;
template <>
constexpr Kind kKindOf<Welcome> = Kind::kWelcome;
template <>
constexpr Kind kKindOf<Offer> = Kind::kOffer;
template <>
constexpr Kind kKindOf<Held> = Kind::kHeld;
template <>
constexpr Kind kKindOf<Piece> = Kind::kPiece;
template <>
constexpr Kind kKindOf<JobText> = Kind::kJob;
template <>
constexpr Kind kKindOf<Started> = Kind::kStarted;
template <>
constexpr Kind kKindOf<ResultText> = Kind::kResult;
template <>
constexpr Kind kKindOf<Cancel> = Kind::kCancel;
template <>
constexpr Kind kKindOf<Question> = Kind::kQuestion;
template <>
constexpr Kind kKindOf<Answer> = Kind::kAnswer;
template <>
constexpr Kind kKindOf<ModelCall> = Kind::kModelCall;
template <>
constexpr Kind kKindOf<ModelReply> = Kind::kModelReply;

template <typename T>
std::string encoded(const T& message) {
  Put put(kKindOf<T>);
  fields(put, message);
  return put.bytes();
}

Status check_piece(int64_t offset, int64_t bytes, int64_t total, std::string_view what) {
  if (offset < 0 || bytes < 0 || bytes > total || offset > total - bytes)
    return invalid("{} of {} bytes at {}, beyond the {} bytes of the operands", what, bytes, offset,
                   total);
  return ok_status();
}

// Far beyond those of any machine.
constexpr size_t kMostCaches = 16;
constexpr int64_t kMostCacheBytes = int64_t{1} << 40;

bool is_rate(double value) { return std::isfinite(value) && value > 0; }

bool is_cpu_that_can_be(const target::Cpu& cpu) {
  return !cpu.triple.empty() && cpu.vector_bytes >= 4 && cpu.vector_bytes <= 4096 &&
         cpu.vector_registers >= 1 && cpu.cores >= 1 && cpu.cores <= 4096 && is_rate(cpu.ghz) &&
         cpu.fma_per_cycle >= 1 && cpu.fma_latency >= 1 && cpu.loads_per_cycle >= 1 &&
         is_rate(cpu.memory_bytes_per_cycle) && cpu.caches.size() <= kMostCaches;
}

// What the fields of a message must be for those who read it.
template <typename T>
Status check(const T&) {
  return ok_status();
}
template <>
Status check(const Offer& m) {
  return check_layout(m.layout);
}
template <>
Status check(const Question& m) {
  return static_cast<int>(m.what) < kWhats ? ok_status() : invalid("an unknown question");
}
template <>
Status check(const ModelCall& m) {
  return static_cast<int>(m.function) < kModelFunctions ? ok_status()
                                                        : invalid("an unknown function of models");
}
template <>
Status check(const ModelReply& m) {
  return m.code >= Code::kOk && m.code <= Code::kInternal ? ok_status()
                                                          : invalid("an unknown code of an error");
}
template <>
Status check(const Welcome& m) {
  if (m.version != kVersion || m.job_version != wire::kProtocolVersion) return ok_status();
  if (!is_cpu_that_can_be(m.target.cpu())) return invalid("a description of no CPU");
  for (const target::Cache& cache : m.target.cpu().caches) {
    if (cache.bytes < 1 || cache.bytes > kMostCacheBytes || cache.line_bytes < 1 ||
        cache.shared_by < 1 || !is_rate(cache.bytes_per_cycle))
      return invalid("a description of no cache");
  }
  return ok_status();
}

}  // namespace

std::string encode(const Hello& message) { return encoded(message); }
std::string encode(const Welcome& message) { return encoded(message); }
std::string encode(const Offer& message) { return encoded(message); }
std::string encode(const Held& message) { return encoded(message); }
std::string encode(const Piece& message) { return encoded(message); }
std::string encode(const JobText& message) { return encoded(message); }
std::string encode(const Started& message) { return encoded(message); }
std::string encode(const ResultText& message) { return encoded(message); }
std::string encode(const Cancel& message) { return encoded(message); }
std::string encode(const Question& message) { return encoded(message); }
std::string encode(const Answer& message) { return encoded(message); }
std::string encode(const ModelCall& message) { return encoded(message); }
std::string encode(const ModelReply& message) { return encoded(message); }

std::string encode_refusal(std::string_view text) {
  return wire::Writer().put(Kind::kRefusal).put(text).bytes();
}

Result<std::string> decode_refusal(std::string_view message) {
  wire::Reader reader(message);
  (void)reader.get<Kind>();
  std::string text = reader.get_string();
  if (!reader.done()) return invalid("a message that is too short or too long");
  return text;
}

Result<Kind> kind_of(std::string_view message) {
  const auto kind = wire::Reader(message).get<Kind>();
  if (kind < Kind::kHello || kind > Kind::kModelReply)
    return invalid("a message of the unknown kind {}", static_cast<int>(kind));
  return kind;
}

template <typename T>
Result<T> decode(std::string_view message) {
  T decoded;
  Get get(message.substr(std::min<size_t>(1, message.size())));  // behind the kind
  fields(get, decoded);
  if (!get.done())
    return invalid("a message of kind {} that is too short or too long",
                   static_cast<int>(kKindOf<T>));
  HONE_RETURN_IF_ERROR(check(decoded));
  return decoded;
}
template Result<Hello> decode(std::string_view);
template Result<Welcome> decode(std::string_view);
template Result<Offer> decode(std::string_view);
template Result<Held> decode(std::string_view);
template Result<Piece> decode(std::string_view);
template Result<JobText> decode(std::string_view);
template Result<Started> decode(std::string_view);
template Result<ResultText> decode(std::string_view);
template Result<Cancel> decode(std::string_view);
template Result<Question> decode(std::string_view);
template Result<Answer> decode(std::string_view);
template Result<ModelCall> decode(std::string_view);
template Result<ModelReply> decode(std::string_view);

Status check_layout(const measure::OperandLayout& layout) {
  if (layout.total_bytes < 1) return invalid("operands of {} bytes", layout.total_bytes);
  for (const auto& e : layout.entries) {
    if (e.role > ir::Role::kOutput || e.bytes < 0) return invalid("an operand of no known role");
    if (e.role != ir::Role::kOutput)
      HONE_RETURN_IF_ERROR(check_piece(e.offset, e.bytes, layout.total_bytes, "an operand"));
  }
  for (const auto& e : layout.expected) {
    if (e.operand < 0 || e.operand >= std::ssize(layout.entries) || dtype_bytes(e.dtype) == 0)
      return invalid("expected values of no operand");
    const auto& entry = layout.entries[static_cast<size_t>(e.operand)];
    if (entry.role != ir::Role::kOutput) return invalid("expected values of an input");
    constexpr int64_t kMost = int64_t{1} << 40;  // far beyond any, and small enough to multiply
    if (e.num_places < 0 || e.num_places > kMost || e.num_values < 0 || e.num_values > kMost)
      return invalid("{} expected values at {} places", e.num_values, e.num_places);
    HONE_RETURN_IF_ERROR(
        check_piece(e.places_offset, 8 * e.num_places, layout.total_bytes, "a list of places"));
    HONE_RETURN_IF_ERROR(
        check_piece(e.values_offset, 8 * e.num_values, layout.total_bytes, "a list of values"));
    const int64_t elements = entry.bytes / dtype_bytes(e.dtype);
    if (e.num_values != (e.num_places > 0 ? e.num_places : elements))
      return invalid("{} expected values of {} elements", e.num_values, elements);
  }
  return ok_status();
}

}  // namespace hone::remote
