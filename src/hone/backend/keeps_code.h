// backend/keeps_code.h - says whether back ends may keep what they compile in files of the user.
#pragma once

#include <atomic>

namespace hone::backend {

// They may while at least one such object lives, as that of a session that uses a database does.
class KeepsCode {
 public:
  KeepsCode() { ++count(); }
  ~KeepsCode() { --count(); }
  KeepsCode(const KeepsCode&) = delete;
  KeepsCode& operator=(const KeepsCode&) = delete;
  [[nodiscard]] static bool any() { return count() > 0; }

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> living = 0;
    return living;
  }
};

}  // namespace hone::backend
