// Profile files: what `gapless calibrate` writes, read and validated.
//
//   {"gapless_profile": 1, "library": "MPICH 5.0.2", "gpu": "NVIDIA H200" or null,
//    "tables": [{"memory": "host", "pair": "same node", "scheme": "packed", "quantity": "message",
//                "bytes": […], "block": […], "row_blocks": […], "ns": [[[12.5, null], …], …]}, …]}
//
// Where it was measured with a fabric: "fabrics": [{"fabric": "tcp", "pair": "same node", "operation_ns": 5000,
// "byte_ns": 0.4, "notification_ns": 5000, "copied_byte_ns": 0.1, "overlap": 0.5, "handshake_ns": 40000}, …].
//
// A quantity is message, pack, unpack or move, or start, which has one time ("ns": 300) and no axes.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/fabric.hpp"
#include "model/measured.hpp"

namespace gapless::model {

inline constexpr int profile_version = 1;

/// What a profile must have been measured with to be used here.
struct Machine {
  std::string library;  ///< as library_name() has it; empty: any
  std::string gpu;      ///< of the driver; empty where there is none
};

/// Why a profile cannot be used, as one sentence.
struct ProfileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a file's text says. `schemes` are the names in the order of CostsByScheme; others in the file are passed over.
/// Throws ProfileError where the text is no profile, or one of another version or machine.
std::unique_ptr<Measured> parse_profile(std::string_view text, const Machine& machine,
                                        std::span<const char* const> schemes);
/// What it says of fabrics, under the same conditions.
std::vector<MeasuredFabric> parse_fabrics(std::string_view text, const Machine& machine);
std::vector<MeasuredFabric> read_fabrics(const std::string& path, const Machine& machine);

/// parse_profile() of a file. Throws ProfileError where it cannot be read, too.
std::unique_ptr<Measured> read_profile(const std::string& path, const Machine& machine,
                                       std::span<const char* const> schemes);

/// "MPICH 5.0.2", "Open MPI 5.0.11", or the first line, from what MPI_Get_library_version says.
std::string library_name(std::string_view version_text);
/// The name of the first GPU of this machine as its driver lists it, without a call to CUDA; empty if there is none.
std::string gpu_name();

}  // namespace gapless::model
