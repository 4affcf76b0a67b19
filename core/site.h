// Sites: the places of the forms at which a production kernel rounds.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace numgate {

enum class Site : std::uint8_t {
  norm,
  gate,
  beta,
  conv,
  out_norm,  // scalar stages, fp32
  cumsum,    // inclusive log2 cumulative gate of a chunk
  akk_dot,
  aqk_dot,   // off-diagonal blocks of k k^T and q k^T
  diag_dot,  // diagonal 16x16 blocks of both
  inverse,   // (I + A)^-1
  u_dot,
  w_dot,  // T (beta v), T (beta k exp G)
  u_store,
  w_store,
  kg_store,
  qg_store,
  aqk_store,  // chunk operands kept in memory
  gamma,      // exp2 of the chunk's whole gate
  h_store,    // chunk-entry state as an operand
  ws_dot,
  qs_dot,      // W S, Qg S
  vnew_store,  // U - W S as an operand
  av_dot,
  kv_dot,  // Aqk v_new, Kg^T v_new
  state,   // the carried state
  summary_kw,
  summary_chain,  // M <- (Diag gamma - Kg^T W) M: Kg^T W, where it is formed; the rest
  merge_dot,      // S <- M S + B
  handoff,        // what ranks and pieces pass on
  decode_dot,
  replay_dot,
  ring,    // decode; ring records
  output,  // the cast of o
};
inline constexpr std::size_t kSiteCount = static_cast<std::size_t>(Site::output) + 1;

enum class SiteKind : std::uint8_t { store, dot };

struct SiteInfo {
  Site site;
  std::string_view name;
  SiteKind kind;
  bool schedule_only;  // exists only where a schedule cuts (DESIGN: equivalence R holds it at ieee)
  std::string_view what;
};

inline constexpr std::array<SiteInfo, kSiteCount> kSites{{
    {Site::norm, "norm", SiteKind::store, false, "q and k after the L2 norm"},
    {Site::gate, "gate", SiteKind::store, false, "log decay g"},
    {Site::beta, "beta", SiteKind::store, false, "beta"},
    {Site::conv, "conv", SiteKind::store, false, "short convolution and SiLU"},
    {Site::out_norm, "out_norm", SiteKind::store, false, "gated RMSNorm"},
    {Site::cumsum, "cumsum", SiteKind::store, false, "cumulative log2 gate inside a chunk"},
    {Site::akk_dot, "akk.dot", SiteKind::dot, false, "off-diagonal k k^T"},
    {Site::aqk_dot, "aqk.dot", SiteKind::dot, false, "off-diagonal q k^T"},
    {Site::diag_dot, "diag.dot", SiteKind::dot, false, "diagonal blocks of k k^T and q k^T"},
    {Site::inverse, "inverse", SiteKind::store, false, "(I + A)^-1"},
    {Site::u_dot, "u.dot", SiteKind::dot, false, "U = T (beta v)"},
    {Site::w_dot, "w.dot", SiteKind::dot, false, "W = T (beta k exp G)"},
    {Site::u_store, "u.store", SiteKind::store, false, "U in memory"},
    {Site::w_store, "w.store", SiteKind::store, false, "W in memory"},
    {Site::kg_store, "kg.store", SiteKind::store, false, "k exp(G_C - G) in memory"},
    {Site::qg_store, "qg.store", SiteKind::store, false, "q exp(G) in memory"},
    {Site::aqk_store, "aqk.store", SiteKind::store, false, "q k^T in memory"},
    {Site::gamma, "gamma", SiteKind::store, false, "exp(G_C)"},
    {Site::h_store, "h.store", SiteKind::store, false, "chunk-entry state as operand"},
    {Site::ws_dot, "ws.dot", SiteKind::dot, false, "W S"},
    {Site::qs_dot, "qs.dot", SiteKind::dot, false, "Qg S"},
    {Site::vnew_store, "vnew.store", SiteKind::store, false, "U - W S as operand"},
    {Site::av_dot, "av.dot", SiteKind::dot, false, "Aqk v_new"},
    {Site::kv_dot, "kv.dot", SiteKind::dot, false, "Kg^T v_new"},
    {Site::state, "state", SiteKind::store, false, "carried state"},
    {Site::summary_kw, "summary.kw", SiteKind::dot, true,
     "Kg^T W of a dense chain (a diag_ chain forms none)"},
    {Site::summary_chain, "summary.chain", SiteKind::dot, true,
     "M <- M_c M; diag_ formats: M <- gamma M - Kg^T (W M)"},
    {Site::merge_dot, "merge.dot", SiteKind::dot, true, "S <- M S + B"},
    {Site::handoff, "handoff", SiteKind::store, true, "summaries and states passed on"},
    {Site::decode_dot, "decode.dot", SiteKind::dot, false, "dots of one decode step"},
    {Site::replay_dot, "replay.dot", SiteKind::dot, true, "dots of one replay step"},
    {Site::ring, "ring", SiteKind::store, true, "ring records khat, u, g"},
    {Site::output, "output", SiteKind::store, false, "o as written"},
}};

constexpr const SiteInfo& info(Site s) { return kSites[static_cast<std::size_t>(s)]; }
constexpr std::string_view name(Site s) { return info(s).name; }

// Raises UsageError for a name that is not in the table.
Site parse_site(std::string_view text);

}  // namespace numgate
