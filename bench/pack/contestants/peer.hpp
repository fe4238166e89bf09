// Other libraries beside gapless: loading them (peer.h), and what they can do of a piece of work.
#pragma once

#include <string>
#include <vector>

#include "contestants/contestant.hpp"
#include "workload.hpp"

namespace gapless::bench {

/// Loads NAME=PATH; a library that cannot be loaded ends the program.
void load_peer(const std::string& name_and_path);

/// A contestant for every loaded peer that takes the type.
std::vector<Contestant> peers(const Workload& work);

}  // namespace gapless::bench
