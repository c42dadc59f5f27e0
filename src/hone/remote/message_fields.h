// remote/message_fields.h - structs as bytes: a function fields(archive, struct), which is found in
// this namespace, names the fields of a struct once, for writing and for reading.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hone/base/wire.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

// Constrains the second parameter of fields(): T, or const T.
template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

void fields(auto& a, Is<Digest> auto& m) { a(m.high, m.low); }

template <typename T>
constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Put {
 public:
  Put() = default;
  explicit Put(Kind kind) { writer_.put(kind); }
  void operator()(const auto&... values) { (put(values), ...); }
  [[nodiscard]] bool is_of_other_version(uint32_t, uint32_t) const { return false; }
  [[nodiscard]] const std::string& bytes() const { return writer_.bytes(); }

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (kIsPlain<T> || std::is_same_v<T, std::string>) {
      writer_.put(value);
    } else {
      fields(*this, value);
    }
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    writer_.put(uint64_t{values.size()});
    for (const T& value : values) put(value);
  }
  wire::Writer writer_;
};

class Get {
 public:
  explicit Get(std::string_view message) : reader_(message) {}
  void operator()(auto&... values) { (get(values), ...); }
  [[nodiscard]] bool is_of_other_version(uint32_t version, uint32_t job_version) {
    is_other_ = version != kVersion || job_version != wire::kProtocolVersion;
    return is_other_;
  }
  // All fields were there and nothing else; what another version has behind them is not known.
  [[nodiscard]] bool done() const { return is_other_ ? reader_.ok() : reader_.done(); }

 private:
  template <typename T>
  void get(T& value) {
    if constexpr (kIsPlain<T>) {
      value = reader_.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = reader_.get_string();
    } else {
      fields(*this, value);
    }
  }
  template <typename T>
  void get(std::vector<T>& values) {
    // It grows with what is read: an element in memory is larger than a byte of the message.
    const size_t count = reader_.get_count();
    values.clear();
    for (size_t i = 0; i < count && reader_.ok(); ++i) get(values.emplace_back());
  }
  wire::Reader reader_;
  bool is_other_ = false;
};

}  // namespace hone::remote
