// tools/hone/interrupt.h - Ctrl-C and SIGTERM end every command within a second. The first one sets
// a flag that long work looks at, and gives up. What has not ended by itself after kGraceSeconds is
// ended by a thread that waits for nothing else, and its temporary files are removed; so no stage
// needs to look at the flag. A second signal kills at once, as if nobody had listened. A closed
// terminal (SIGHUP) is like the first, but never kills.
#pragma once

#include <atomic>
#include <string_view>

namespace hone::tool {

inline constexpr double kGraceSeconds = 0.7;

// Listens from now on, as main() does first of all; the flag lives as long as the process.
const std::atomic<bool>& listen_for_interrupt();
// What a command that is ended says; without it "interrupted; nothing was written".
void set_interrupt_message(std::string_view text);
// From now on the command ends by itself, whatever time it takes: `tune` writes the best so far.
void finish_when_interrupted();
// Ends the process at once, whatever its threads do: one line on stderr, no temporary file is left.
[[noreturn]] void end_process(std::string_view message, int exit_code);
// As a shell says of a process that was ended: 143 of SIGTERM, 130 of Ctrl-C and a closed terminal.
[[nodiscard]] int interrupt_exit_code();

}  // namespace hone::tool
