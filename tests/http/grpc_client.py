"""Makes calls with Debian's gRPC (python3-grpcio), as standard input says, and prints what came back.

Runs as a program of its own: the Python of the tests need not be the one that has the package.
"""
import json
import sys

import grpc

asked = json.load(sys.stdin)
channel = grpc.insecure_channel(f"127.0.0.1:{asked['port']}",
                                options=[("grpc.max_send_message_length", -1)])
answers = []
for call in asked["calls"]:
    method = channel.unary_unary(call["path"])
    try:
        answer = method(bytes.fromhex(call["body"]), timeout=call.get("timeout", 20),
                        metadata=[tuple(pair) for pair in call.get("metadata", [])],
                        compression=grpc.Compression.Gzip if call.get("gzip") else None)
        answers.append({"code": "OK", "text": "", "body": answer.hex()})
    except grpc.RpcError as why:
        answers.append({"code": why.code().name, "text": why.details(), "body": "",
                        "trailers": {key: value if isinstance(value, str) else value.hex()
                                     for key, value in why.trailing_metadata() or ()}})
channel.close()
print(json.dumps(answers))
