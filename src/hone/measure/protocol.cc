#include "hone/measure/protocol.h"

#include "hone/measure/wire.h"

namespace hone::measure {
namespace {

template <typename T>
Result<T> checked(const Reader& r, T value) {
  if (!r.done()) return invalid("a message of the worker's protocol is too short or too long");
  return value;
}

bool is_role(ir::Role role) { return role <= ir::Role::kOutput; }

}  // namespace

std::string encode(const OperandsMessage& m) {
  Writer w;
  w.put(m.id).put(m.layout.total_bytes).put(uint64_t{m.layout.entries.size()});
  for (const auto& e : m.layout.entries) w.put(e.role).put(e.bytes).put(e.offset);
  w.put(uint64_t{m.layout.expected.size()});
  for (const auto& e : m.layout.expected) {
    w.put(e.operand)
        .put(e.dtype)
        .put(e.num_places)
        .put(e.places_offset)
        .put(e.num_values)
        .put(e.values_offset);
  }
  return w.bytes();
}

Result<OperandsMessage> decode_operands(std::string_view bytes) {
  Reader r(bytes);
  OperandsMessage m;
  m.id = r.get<uint64_t>();
  m.layout.total_bytes = r.get<int64_t>();
  m.layout.entries.resize(r.get_count());
  for (auto& e : m.layout.entries) {
    e.role = r.get<ir::Role>(), e.bytes = r.get<int64_t>(), e.offset = r.get<int64_t>();
    if (!is_role(e.role) || e.bytes < 0) return invalid("a bad operand in a message");
  }
  m.layout.expected.resize(r.get_count());
  for (auto& e : m.layout.expected) {
    e.operand = r.get<int>(), e.dtype = r.get<DType>();
    e.num_places = r.get<int64_t>(), e.places_offset = r.get<int64_t>();
    e.num_values = r.get<int64_t>(), e.values_offset = r.get<int64_t>();
  }
  return checked(r, std::move(m));
}

std::string encode_job(const Job& j) {
  Writer w;
  w.put(j.id).put(j.object).put(uint64_t{j.phases.size()});
  for (const auto& p : j.phases) w.put(p.symbol).put(p.num_tiles).put(p.prepare);
  w.put(j.scratch_bytes).put(uint64_t{j.arguments.size()});
  for (const auto& a : j.arguments) w.put(a.role).put(a.bytes).put(a.operand);
  w.put(j.operands ? j.operands->id() : uint64_t{0}).put(j.threads);
  const TimingOptions& t = j.timing;
  w.put(t.sample_seconds).put(t.min_samples).put(t.max_samples).put(t.precision).put(t.max_seconds);
  w.put(t.best).put(t.stop_ratio).put(t.slower_ratio);
  w.put(j.cold_weights).put(j.tolerance);
  return w.bytes();
}

Result<JobMessage> decode_job(std::string_view bytes) {
  Reader r(bytes);
  JobMessage m;
  Job& j = m.job;
  j.id = r.get<uint64_t>();
  j.object = r.get_string();
  j.phases.resize(r.get_count());
  for (auto& p : j.phases) {
    p.symbol = r.get_string(), p.num_tiles = r.get<int64_t>(), p.prepare = r.get<bool>();
  }
  j.scratch_bytes = r.get<int64_t>();
  j.arguments.resize(r.get_count());
  for (auto& a : j.arguments) {
    a.role = r.get<ir::Role>(), a.bytes = r.get<int64_t>(), a.operand = r.get<int>();
    if (!is_role(a.role)) return invalid("a bad argument in a message");
  }
  m.operands = r.get<uint64_t>();
  j.threads = r.get<int>();
  TimingOptions& t = j.timing;
  t.sample_seconds = r.get<double>(), t.min_samples = r.get<int>(), t.max_samples = r.get<int>();
  t.precision = r.get<double>(), t.max_seconds = r.get<double>();
  t.best = r.get<double>(), t.stop_ratio = r.get<double>(), t.slower_ratio = r.get<double>();
  j.cold_weights = r.get<bool>(), j.tolerance = r.get<double>();
  return checked(r, std::move(m));
}

std::string encode(const Measurement& m) {
  Writer w;
  w.put(m.id).put(m.outcome).put(m.message).put(uint64_t{m.timing.samples.size()});
  for (const double s : m.timing.samples) w.put(s);
  w.put(m.timing.centre)
      .put(m.timing.low)
      .put(m.timing.high)
      .put(m.timing.runs)
      .put(m.timing.stopped_early);
  w.put(m.verified).put(m.error);
  return w.bytes();
}

Result<Measurement> decode_measurement(std::string_view bytes) {
  Reader r(bytes);
  Measurement m;
  m.id = r.get<uint64_t>();
  m.outcome = r.get<Outcome>();
  if (static_cast<size_t>(m.outcome) >= std::size(kOutcomeNames))
    return invalid("a bad outcome in a message");
  m.message = r.get_string();
  m.timing.samples.resize(r.get_count());
  for (double& s : m.timing.samples) s = r.get<double>();
  m.timing.centre = r.get<double>(), m.timing.low = r.get<double>(),
  m.timing.high = r.get<double>();
  m.timing.runs = r.get<int64_t>(), m.timing.stopped_early = r.get<bool>();
  m.verified = r.get<bool>(), m.error = r.get<double>();
  return checked(r, std::move(m));
}

}  // namespace hone::measure
