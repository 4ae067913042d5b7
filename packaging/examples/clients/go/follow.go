// Follow follows a node: it prints its state, then each event once and in order, one JSON object a line. It goes on
// where it was after a restart of the daemon. After one of its own it does so, too, as the daemon keeps its position
// under a name; it prints no state then.
//
//	follow NAME
//
// NODEAGENT_SOCKET says where the socket is. build.sh builds it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "example/nodeagentv1"
)

const longestPause = 10 * time.Second

// What trying again cannot mend.
var final = map[codes.Code]bool{
	codes.InvalidArgument:    true,
	codes.NotFound:           true,
	codes.PermissionDenied:   true,
	codes.Unauthenticated:    true,
	codes.FailedPrecondition: true,
	codes.OutOfRange:         true,
	codes.Unimplemented:      true,
}

func connect() (*grpc.ClientConn, error) {
	socket := os.Getenv("NODEAGENT_SOCKET")
	if socket == "" {
		socket = "/run/nodeagent/nodeagent.sock"
	}
	return grpc.Dial("unix:"+socket, grpc.WithInsecure(), grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		// A node that loses its power says nothing: the stream would wait for ever.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}))
}

type follower struct {
	client   pb.FaultServiceClient
	consumer string
	storeID  *pb.StoreId // Not set: the daemon knows the position of this name, or sends a snapshot.
	seq      uint64
	pause    time.Duration
}

type event struct {
	Seq      string `json:"seq"`
	Kind     string `json:"kind"`
	Device   string `json:"device"`
	Code     string `json:"code"`
	Verdict  string `json:"verdict"`
	Handling string `json:"handling"`
}

type snapshot struct {
	Snapshot string            `json:"snapshot"`
	Devices  map[string]string `json:"devices"`
}

// show is your part. Only when it is done is the position told to the daemon: what is shown here may come twice if this
// program is killed in between, and never not at all. It returns the last number that was shown.
func show(response *pb.WatchResponse) uint64 {
	switch payload := response.Payload.(type) {
	case *pb.WatchResponse_Snapshot:
		devices := map[string]string{}
		for _, each := range payload.Snapshot.Devices {
			devices[each.Name] = each.Verdict.String()
		}
		seq := payload.Snapshot.Seq
		print(snapshot{Snapshot: strconv.FormatUint(seq, 10), Devices: devices})
		return seq
	case *pb.WatchResponse_Batch:
		var seq uint64
		for _, each := range payload.Batch.Events {
			seq = each.Seq
			print(event{strconv.FormatUint(seq, 10), each.Kind.String(), each.Device, each.Code,
				each.Verdict.String(), each.Handling.String()})
		}
		return seq
	default:
		return response.GetBookmark().GetSeq()
	}
}

func print(line any) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		end(err)
	}
}

func end(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// follow reads one stream, from the position on, until it ends.
func (f *follower) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.client.Watch(ctx, &pb.WatchRequest{Consumer: f.consumer, StoreId: f.storeID, AfterSeq: f.seq,
		Snapshot: pb.SnapshotMode_SNAPSHOT_MODE_IF_NEEDED})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		if response.Payload == nil {
			continue // A newer daemon says what this program does not know: it moves no position.
		}
		f.storeID, f.seq, f.pause = response.StoreId, show(response), 100*time.Millisecond
		_, err = f.client.Ack(ctx, &pb.AckRequest{Consumer: f.consumer, StoreId: f.storeID, Seq: f.seq})
		// The store may have begun anew: the stream brings a snapshot of it.
		if err != nil && status.Code(err) != codes.FailedPrecondition {
			return err
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: follow NAME")
		os.Exit(2)
	}
	rand.Seed(time.Now().UnixNano()) // Go before 1.20 gives the same numbers to every process.
	connection, err := connect()
	if err != nil {
		end(err)
	}
	f := follower{client: pb.NewFaultServiceClient(connection), consumer: os.Args[1], pause: 100 * time.Millisecond}
	for {
		err := f.follow(context.Background())
		if final[status.Code(err)] {
			end(err)
		}
		// So that a rack of clients does not come back at once.
		pause := f.pause/2 + time.Duration(rand.Int63n(int64(f.pause/2)))
		fmt.Fprintf(os.Stderr, "nodeagent does not answer, asking again in %d ms: %v\n", pause.Milliseconds(), err)
		time.Sleep(pause)
		if f.pause *= 2; f.pause > longestPause {
			f.pause = longestPause
		}
	}
}
