#!/usr/bin/env python3
"""KDA prefill and decode beside flash-linear-attention, one process, same inputs: times and the
difference of the outputs, as JSON.

    speed.py LIBRARY FLA_CHECKOUT OUT.json [--commit HASH]

LIBRARY is libnumgate_kda_entry.so; FLA_CHECKOUT holds fla/. Times are medians of CUDA events."""
import ctypes, json, os, statistics, subprocess, sys, tempfile

library, fla, out = sys.argv[1:4]
commit = sys.argv[5] if sys.argv[4:5] == ["--commit"] else "unknown"
sys.path.insert(0, fla)
os.environ.setdefault("FLA_DISABLE_BACKEND_DISPATCH", "1")
import torch

lib = ctypes.CDLL(library)
lib.numgate_kda_workspace.restype = ctypes.c_int64
lib.numgate_kda_workspace.argtypes = [ctypes.c_int64] + [ctypes.c_int] * 3
P, I, L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
lib.numgate_kda_prefill.argtypes = [P] * 9 + [L, I, I, I, L, P, P]
lib.numgate_kda_decode.argtypes = [P] * 9 + [I, I, I, I, P]
torch.manual_seed(0)
H, D = 64, 128


def ms(f, n, warm=3):
    for _ in range(warm):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(n):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(), f(), b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return statistics.median(times)


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def difference(a, b):
    return float((a.double() - b.double()).norm() / b.double().norm())


def call(function, *args):
    stream = torch.cuda.current_stream().cuda_stream
    args = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    if function(*args, stream):
        sys.exit("the library refused a call")


def fla_functions():
    from fla.ops.kda import chunk_kda, fused_recurrent_kda
    return chunk_kda, fused_recurrent_kda


def copy_bandwidth():
    x = torch.randint(0, 255, (2**31,), dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    return 2 * 2**31 / ms(lambda: y.copy_(x), 10) / 1e9


def prefill(T, A, dt, slabs, peer):
    q, k, v, g, beta = normal(1, T, H, D), normal(1, T, H, D), normal(1, T, H, D), normal(1, T, H, D), normal(1, T, H)
    o, state = torch.empty_like(v), torch.empty(H, D, D, device="cuda")
    row = {"T": T, "slabs": {}}
    for slab in slabs:
        slab = min(slab, T)
        if str(slab) in row["slabs"]:
            continue
        work = torch.empty(lib.numgate_kda_workspace(slab, H, D, D), dtype=torch.uint8, device="cuda")
        run = lambda: call(lib.numgate_kda_prefill, q, k, v, g, beta, A, dt, o, state, T, H, D, D, slab, work)
        row["slabs"][str(slab)] = ms(run, 8)
        del work
    row["numgate_ms"] = min(row["slabs"].values())
    row["bytes_floor_ms"] = 5 * T * H * D * 2 / copy_TBs / 1e9
    if peer:
        kwargs = dict(use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
                      safe_gate=True, lower_bound=-5.0, A_log=A, dt_bias=dt.flatten(), output_final_state=True)
        with torch.no_grad():
            f = lambda: peer(q, k, v, g, beta, **kwargs)
            fo, fs = f()
            row["fla_ms"] = ms(f, 8)
        row["o_difference"], row["state_difference"] = difference(o, fo), difference(state, fs[0])
        row["speedup"] = row["fla_ms"] / row["numgate_ms"]
    return row


def decode(B, A, dt, peer):
    q, k, v, g, beta = normal(B, 1, H, D), normal(B, 1, H, D), normal(B, 1, H, D), normal(B, 1, H, D), normal(B, 1, H)
    start = torch.randn(B, H, D, D, device="cuda")
    o, state = torch.empty_like(v), start.clone()
    run = lambda: call(lib.numgate_kda_decode, q, k, v, g, beta, A, dt, o, state, B, H, D, D)
    run()
    first_o, first_state = o.clone(), state.clone()
    row = {"batch": B, "numgate_us": ms(run, 40, 5) * 1e3}
    row["state_TBs"] = 2 * state.numel() * 4 / row["numgate_us"] / 1e6
    row["of_copy_bandwidth"] = row["state_TBs"] / copy_TBs
    if peer:
        gate = -5.0 * torch.sigmoid(A.exp().view(1, 1, H, 1) * (g.float() + dt.view(1, 1, H, D)))
        b = beta.float().sigmoid()
        with torch.no_grad():
            f = lambda: peer(q, k, v, gate, b, initial_state=start, output_final_state=True, use_qk_l2norm_in_kernel=True)
            fo, fs = f()
            row["fla_us"] = ms(f, 40, 5) * 1e3
        row["o_difference"], row["state_difference"] = difference(first_o, fo), difference(first_state, fs)
        row["speedup"] = row["fla_us"] / row["numgate_us"]
    return row


copy_TBs = copy_bandwidth()
A, dt = torch.zeros(H, device="cuda"), torch.zeros(H, D, device="cuda")
try:
    chunk, recurrent = fla_functions()
except Exception as e:  # the peer is not there: our figures alone
    print("fla:", e, file=sys.stderr)
    chunk = recurrent = None
driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
record = {
    "device": torch.cuda.get_device_name(), "driver": driver.stdout.strip(), "toolkit": torch.version.cuda,
    "commit": commit, "command": "benchmarks/speed.py libnumgate_kda_entry.so FLA_CHECKOUT speed.json",
    "heads": H, "K": D, "V": D, "plan": "production", "copy_TBs": copy_TBs,
    "complete": False, "prefill": [], "decode": [],
}


def write():
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(os.path.abspath(out)), delete=False) as f:
        json.dump(record, f, indent=1)
    os.replace(f.name, out)


def keep(part, row):  # the peer compiles for a minute: what is measured is kept, should it be cut off
    record[part].append(row)
    print(json.dumps(row), flush=True)
    write()


for B in (1, 64, 256):
    keep("decode", decode(B, A, dt, recurrent))
for T in (8192, 32768, 131072):
    keep("prefill", prefill(T, A, dt, (512, 1024, 2048, 8192, 32768, 131072), chunk))
record["complete"] = True
write()
