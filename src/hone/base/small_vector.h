// base/small_vector.h - a vector of plain values with room for a few of them inside itself: a
// handful of numbers needs no memory of its own, more move to the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace hone {

template <typename T, size_t kInside>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  SmallVector() {}  // NOLINT: leaves the places without an element alone
  SmallVector(std::initializer_list<T> values) { assign(values); }
  SmallVector(const SmallVector& other) { assign(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() = default;
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* begin() { return heap_ ? heap_.get() : inside_; }
  [[nodiscard]] T* end() { return begin() + size_; }
  [[nodiscard]] const T* begin() const { return heap_ ? heap_.get() : inside_; }
  [[nodiscard]] const T* end() const { return begin() + size_; }
  [[nodiscard]] T& operator[](size_t i) { return begin()[i]; }
  [[nodiscard]] const T& operator[](size_t i) const { return begin()[i]; }
  [[nodiscard]] T& back() { return end()[-1]; }
  [[nodiscard]] const T& back() const { return end()[-1]; }

  void push_back(T value) {
    reserve(size_ + 1);
    begin()[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t size, T value = T()) {
    reserve(size);
    if (size > size_) std::fill(end(), begin() + size, value);
    size_ = size;
  }
  void assign(std::span<const T> values) {
    clear();
    reserve(values.size());
    std::copy(values.begin(), values.end(), begin());
    size_ = values.size();
  }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void reserve(size_t room) {
    if (room <= room_) return;
    room = std::max(room, 2 * room_);
    auto larger = std::make_unique_for_overwrite<T[]>(room);
    std::copy(begin(), end(), larger.get());
    heap_ = std::move(larger);
    room_ = room;
  }
  // What it holds itself is not kept.
  void take(SmallVector& other) {
    if (!other.heap_) return assign(other);
    heap_ = std::move(other.heap_);
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, kInside);
  }

  size_t size_ = 0, room_ = kInside;
  std::unique_ptr<T[]> heap_;  // null: the elements are inside
  T inside_[kInside];
};

}  // namespace hone
