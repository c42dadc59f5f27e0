#include "hone/ir/random_gpu_program.h"

#include <fmt/format.h>

#include "hone/base/assert.h"
#include "hone/base/rng.h"
#include "hone/ir/parser.h"

namespace hone::ir {
namespace {

constexpr int64_t kElements = 64;  // of each buffer (and of each stage)

// Loops over threads that run a statement for each element, by the innermost of their threads.
struct Nest {
  std::string begin, element, end, thread;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  std::string program() {
    std::string body;
    for (const char* buffer : {"s", "u", "r"}) body += filled(buffer);
    const int64_t parts = rng_.between(2, 5);
    for (int64_t i = 0; i < parts; ++i) body += part();
    body += store("y[b, {}]", {});
    return fmt::format(
        "program random_gpu {{ input x: f32[2, {0}] workspace w: f32[2, {0}] output y: f32[2, {0}]\n"
        "phase {{ parallel b in 0..2 {{ alloc shared s: f32[{0}] {{ alloc shared u: f32[{0}] {{\n"
        "alloc shared r: f32[2, {0}] {{ alloc fragment f: f32[8, 8] {{\n{1}}} }} }} }} }} }} }}\n",
        kElements, body);
  }

 private:
  std::string name(std::string_view stem) { return fmt::format("{}{}", stem, next_++); }

  Nest nest() {
    const std::string a = name("t"), c = name("t"), i = name("n");
    switch (rng_.below(8)) {
      case 0: return {fmt::format("thread {} in 0..64 {{ ", a), a, "}", a};
      case 1:
        return {fmt::format("thread {} in 0..8 {{ thread {} in 0..8 {{ ", a, c),
                fmt::format("{} * 8 + {}", a, c), "} }", a};
      case 2:
        return {fmt::format("thread {} in 0..32 {{ for {} in 0..2 {{ ", a, i),
                fmt::format("{} * 32 + {}", i, a), "} }", a};
      case 3:
        return {fmt::format("thread {} in 0..16 {{ unrolled {} in 0..4 {{ ", a, i),
                fmt::format("{} * 4 + {}", a, i), "} }", a};
      case 4:
        return {fmt::format("warp {} in 0..2 {{ lane {} in 0..32 {{ ", a, c),
                fmt::format("{} * 32 + {}", a, c), "} }", c};
      case 5:
        return {fmt::format("thread {} in 0..64 {{ ", a),
                fmt::format("{0} // 16 * 16 + {0} % 16", a), "}", a};
      default:
        return {fmt::format("thread {} in 0..16 {{ vectorized {} in 0..4 {{ ", a, i),
                fmt::format("{} * 4 + {}", a, i), "} }", a};
    }
  }

  // An index that differs for each element.
  std::string place(const std::string& e) {
    switch (rng_.below(5)) {
      case 0: return fmt::format("63 - ({})", e);
      case 1: return fmt::format("({} + {}) % 64", e, rng_.between(1, 63));
      default: return e;
    }
  }
  std::string any_place(const std::string& e) {
    switch (rng_.below(6)) {
      case 0: return fmt::format("({}) // 2", e);
      case 1: return fmt::format("({}) * 3 % 64", e);
      case 2: return fmt::format("{}", rng_.between(0, 63));
      default: return place(e);
    }
  }
  // An element of a buffer other than the one that is stored to.
  std::string read(const std::string& e, std::string_view stored) {
    std::vector<std::string> sources = {"x[b, {}]"};
    if (filling_) return fmt::format(fmt::runtime(sources[0]), any_place(e));
    for (const char* source : {"s[{}]", "u[{}]"}) {
      if (stored[0] != source[0]) sources.emplace_back(source);
    }
    if (stored[0] != 'r') sources.push_back(fmt::format("r[{}, {{}}]", stage_));
    if (stored[0] == 'r' && !loop_.empty()) sources.push_back("r[(" + loop_ + " + 1) % 2, {}]");
    if (written_ && stored[0] != 'w') sources.emplace_back("w[b, {}]");
    return fmt::format(fmt::runtime(rng_.choice(sources)), any_place(e));
  }

  // What is read, or a choice by the thread or by the element.
  std::string operand(const Nest& n, std::string_view stored) {
    const std::string value = read(n.element, stored);
    if (rng_.chance(0.5)) return value;
    const auto choice = [&](const std::string& otherwise) {
      const std::string number = rng_.chance(0.7) ? n.thread : n.element;
      return fmt::format("select({} < {}, {}, {})", number, rng_.between(1, 12), value, otherwise);
    };
    switch (rng_.below(4)) {
      case 0: return choice("2.0 * " + value);
      case 1: return fmt::format("({} + {})", choice("0.0"), value);
      case 2: {
        const std::string first = choice("0.0");
        return fmt::format("({} + {})", first, choice("1.0"));
      }
      default: return choice(read(n.element, stored));
    }
  }

  // Stores to each element of `target`, such as "s[{}]".
  std::string store(std::string_view target, std::string_view guard) {
    const Nest n = nest();
    const std::string index = place(n.element);
    std::string value = operand(n, target);
    for (int64_t more = rng_.between(0, 2); more > 0; --more)
      value += (rng_.chance(0.5) ? " + " : " * ") + operand(n, target);
    const std::string element = fmt::format(fmt::runtime(target), index);
    if (rng_.chance(0.3) && target[0] != 'y' && !filling_) value += " - " + element;
    std::string statement = element + " = " + value;
    if (!guard.empty()) statement = fmt::format("if {} {{ {} }}", guard, statement);
    return n.begin + statement + " " + n.end + "\n";
  }
  std::string filled(std::string_view buffer) {
    filling_ = true;
    const std::string text = buffer == "r" ? store("r[0, {}]", {}) + store("r[1, {}]", {})
                                           : store(fmt::format("{}[{{}}]", buffer), {});
    filling_ = false;
    return text;
  }
  std::string target() {
    const std::vector<std::string> targets = {"s[{}]", "u[{}]", "r[" + stage_ + ", {}]",
                                              "w[b, {}]"};
    return rng_.choice(targets);
  }

  std::string fragment() {
    const std::string a = name("t"), c = name("t");
    const std::string e = fmt::format("{} * 8 + {}", a, c);
    const std::string other = rng_.chance(0.5) ? fmt::format("s[{}]", any_place(e)) : "1.0";
    return fmt::format(
        "thread {0} in 0..8 {{ thread {1} in 0..8 {{ f[{0}, {1}] = {2} }} }}\n"
        "thread {0}x in 0..8 {{ thread {1}x in 0..8 {{ u[{0}x * 8 + {1}x] = f[{0}x, {1}x] }} }}\n",
        a, c, other);
  }
  std::string asynchronous() {
    const Nest n = nest();
    std::string text = fmt::format("{}async s[{}] = x[b, {}] {}\ncommit\n", n.begin, n.element,
                                   any_place(n.element), n.end);
    // Something else may be done meanwhile.
    if (rng_.chance(0.5)) {
      const Nest other = nest();
      text += fmt::format("{}u[{}] = x[b, {}] {}\n", other.begin, other.element,
                          any_place(other.element), other.end);
    }
    if (rng_.chance(0.3)) return text + "commit\nwait 1\n";
    return text + "wait 0\n";
  }
  std::string lanes() {
    const std::string w = name("w"), l = name("l"), m = name("l");
    return fmt::format(
        "warp {0} in 0..2 {{ lane {1} in 0..32 {{ s[{0} * 32 + {1}] = x[b, {1}] }}\n"
        "lane {2} in 0..32 {{ u[{0} * 32 + {2}] = s[{0} * 32 + {3}] }} }}\n",
        w, l, m, rng_.chance(0.5) ? m : "31 - " + m);
  }

  std::string part() {
    const uint64_t kind = rng_.below(loop_.empty() ? 8 : 6);
    if (kind == 1) return fragment();
    if (kind == 2) return asynchronous();
    if (kind == 3) return lanes();
    if (kind == 4) {
      const std::string condition =
          loop_.empty() ? "b < 1" : fmt::format("{} < {}", loop_, rng_.between(1, 3));
      const bool seen = written_;
      std::string text = fmt::format("if {} {{ {} }}\n", condition, part());
      written_ = seen;
      return text;
    }
    if (kind < 6) {
      const std::string to = target();
      std::string text = store(to, rng_.chance(0.2) ? "b < 1" : "");
      written_ = written_ || to[0] == 'w';
      return text;
    }
    loop_ = name("k");
    stage_ = loop_ + " % 2";
    const bool seen = written_;
    std::string text = fmt::format("for {} in 0..{} {{\n", loop_, rng_.between(2, 4));
    for (int64_t i = rng_.between(1, 3); i > 0; --i) text += part();
    written_ = seen;
    loop_.clear();
    stage_ = "0";
    return text + "}\n";
  }

  Rng rng_;
  std::string loop_;         // the variable of the loop of the block around, if any
  std::string stage_ = "0";  // the stage of r that is stored to
  bool written_ = false;     // whether w has values
  bool filling_ = false;     // only x has values
  int next_ = 0;
};

}  // namespace

Program random_gpu_program(uint64_t seed) {
  Result<Program> program = parse_program(Generator(seed).program());
  HONE_ASSERT(program.ok(), "the text of a random program is no program");
  return *std::move(program);
}

}  // namespace hone::ir
