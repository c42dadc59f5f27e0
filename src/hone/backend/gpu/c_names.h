// backend/gpu/c_names.h - names of C for the variables and buffers of a program: their own names,
// made identifiers, with a suffix where one is taken or means something in OpenCL C or CUDA C.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hone::backend::gpu {

class CNames {
 public:
  // Gives an object a name that nothing else has now.
  const std::string& declare(const void* object, std::string_view wanted);
  // Returns the name that the object has.
  [[nodiscard]] const std::string& of(const void* object) const;
  // Takes the name away, so that another object may have it.
  void release(const void* object);
  // Returns a name that nothing else has now, and takes it for good.
  [[nodiscard]] std::string fresh(std::string_view wanted);

 private:
  std::unordered_map<const void*, std::string> names_;  // looked up only
  std::set<std::string, std::less<>> used_;
};

// Returns whether C, one of the dialects or a function that is printed uses the word.
[[nodiscard]] bool is_c_word(std::string_view word);

}  // namespace hone::backend::gpu
