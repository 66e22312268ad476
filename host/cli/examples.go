package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// examples are command lines for the help of a command, by its words. They are commands of sh, and may end in a
// comment. A test parses each, and runs those that need no cluster.
var examples = map[string]string{
	"dev": `
regedge dev
regedge dev --registry registry.db --data mine    # a registry of your own
regedge dev --listen 127.0.0.1:9000 --writer-listen 127.0.0.1:9001`,
	"edge": `
# on database files of this machine
regedge edge --registry registry.db --access access.db --state state \
  --writer http://127.0.0.1:8081 --token-file mumbai.token
# on replicas of this machine, which regedge replica keeps
regedge edge --state state --token-file mumbai.token \
  --registry http://127.0.0.1:8281 --registry-replica replica-registry \
  --access http://127.0.0.1:8282 --access-replica replica-access \
  --writer https://centre.example.org:8081`,
	"meter": `
regedge meter --state state --writer https://centre.example.org:8081 \
  --token-file mumbai.token --meter-token-file meter.token`,
	"primary": `
regedge primary --dir primary-registry --listen 127.0.0.1:8181 \
  --replication 0.0.0.0:5181 --jwt-key registry.pub \
  --tls-ca ca.crt --tls-cert primary.crt --tls-key primary.key`,
	"replica": `
regedge replica --dir replica-registry --listen 127.0.0.1:8281 \
  --primary https://centre.example.org:5181 --jwt-key registry-replica.pub \
  --tls-ca ca.crt --tls-cert edge-mumbai.crt --tls-key edge-mumbai.key`,
	"writer": `
# everything in files of this machine
regedge writer --database ledger.db --access access.db \
  --token-file operator.token
# access on its primary, for edges elsewhere
regedge writer --listen 0.0.0.0:8081 \
  --tls-cert writer.crt --tls-key writer.key \
  --database ledger.db --access http://127.0.0.1:8182 \
  --access-token-file access.token --token-file operator.token`,
	"import": `
regedge import --registry registry.db pincodes.csv companies-*.csv
regedge import --registry registry.db --as-of 2025-05-05 \
  --rejects rejects.csv companies-*.csv llps.csv
regedge import --registry registry.db --verify    # is it whole?`,
	"push": `
export REGEDGE_REGISTRY=http://127.0.0.1:8181    # the registry's primary
regedge push registry.db --dry-run    # what differs
regedge push registry.db
regedge push registry.db --yes 1250    # 1,250 records are meant to go`,
	"rollback": `
export REGEDGE_REGISTRY=http://127.0.0.1:8181    # the registry's primary
regedge rollback --releases releases --dry-run    # what would change
regedge rollback --releases releases    # to the one before; asks first`,
	"generate": `
regedge generate --out made --companies 1000
regedge generate --out more --companies 2000 --compress gzip --seed 7`,
	"account add": `
regedge account add Acme --email ada@acme.example
regedge account add "Acme Traders" --plan growth`,
	"account list": `
regedge account list
regedge account list --search acme
regedge account list --all --json`,
	"account change": `
regedge account change 1 --plan growth
regedge account change 1 --name "Acme Traders" --email ada@acme.example`,
	"account suspend": `
regedge account suspend 1    # asks first
regedge account suspend 1 --yes`,
	"account resume": `
regedge account resume 1`,
	"account invite": `
regedge account invite ada@acme.example --account 1
regedge account invite olga@example.org --operator`,
	"key add": `
regedge key add 1 --name "billing server"
regedge key add 1 --name notebook --expires 720h --allow 192.0.2.0/24
regedge key add 1 --name website --per-minute 30 --monthly-credits 5000`,
	"key list": `
regedge key list 1`,
	"key rename": `
regedge key rename 1 "billing server"`,
	"key expire": `
regedge key expire 1 --at 2030-12-31
regedge key expire 1 --at 720h
regedge key expire 1 --never`,
	"key rotate": `
regedge key rotate 1    # the old secret works for a day more
regedge key rotate 1 --overlap 168h
regedge key rotate 1 --overlap 0s    # ends it at once; asks first`,
	"key allow": `
regedge key allow 1 192.0.2.0/24 2001:db8::/32
regedge key allow 1 --anywhere`,
	"key limit": `
regedge key limit 1 --per-minute 30 --monthly-credits 5000
regedge key limit 1 --monthly-credits 0    # no limit any more`,
	"key requests": `
regedge key requests --account 1 --limit 20
regedge key requests --search 01KADN4XQ0V8R5T2M7C3B9HZ6E    # by id`,
	"key revoke": `
regedge key revoke 1    # asks first
regedge key revoke 1 --yes`,
	"plan add": `
regedge plan add trial --per-minute 30 --monthly-volume 500
regedge plan add partner --per-minute 600 --monthly-volume 500000 --email`,
	"plan change": `
regedge plan change growth --per-minute 600
regedge plan change starter --email`,
	"credit add": `
regedge credit add 1 5000 --note "invoice 2031"
regedge credit add 1 20 --compensate --note "outage of 3 May"`,
	"credit take": `
regedge credit take 1 100 --note "booked twice"    # asks first
regedge credit take 1 100000000 --at-most --yes    # what there is`,
	"credit list": `
regedge credit list 1
regedge credit list 1 --json`,
	"credit resolve": `
regedge credit doubts    # lists them
regedge credit resolve 01KADN4XQ0V8R5T2M7C3B9HZ6E`,
	"trust init": `
regedge trust init --trust trust    # asks before it replaces keys`,
	"trust machine": `
regedge trust machine primary --host centre.example.org
regedge trust machine edge-mumbai`,
	"trust token": `
regedge trust token registry    # may write: for the centre
regedge trust token registry --read-only --life 720h    # for an edge`,
	"trust renew": `
regedge trust renew --trust trust`,
	"trust operator add": `
regedge trust operator add prometheus --life 8760h
regedge trust operator add olga --role accounts`,
	"trust operator end": `
regedge trust operator end prometheus    # asks first at a terminal`,
	"node add": `
regedge node add mumbai
regedge node add frankfurt --trust trust    # and its other credentials`,
	"node token": `
regedge node token mumbai    # asks at a terminal, if the old one is used`,
	"node retire": `
regedge node retire mumbai --old-epochs    # it lost its disk; asks first
regedge node retire mumbai    # for ever; asks first`,
	"status": `
regedge status
regedge status --explain    # what is wrong, and what to do
regedge status --watch --interval 5s`,
	"doctor": `
regedge doctor
regedge doctor --json
regedge doctor client    # the way to the writer, and the nodes`,
	"doctor edge": `
regedge doctor edge --registry registry.db --access access.db \
  --state state --writer http://127.0.0.1:8081 --token-file mumbai.token`,
	"doctor client": `
regedge doctor client
regedge doctor client --registry http://127.0.0.1:8181`,
	"probe": `
regedge probe
regedge probe --listen 127.0.0.1:8081 --tls-cert writer.crt`,
	"usage": `
regedge usage --account 1 --from 2026-01-01 --to 2026-02-01
regedge usage --account 1 --by day,endpoint
regedge usage --account 1 --by key --csv`,
	"audit": `
regedge audit --limit 20
regedge audit --account 1 --search key
regedge audit --all --json`,
	"version": `
regedge version
regedge version --json`,
}

// showExamples adds its examples to the help of each command.
func showExamples(root *kong.Node) {
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if command, ok := node.(*kong.Node); ok && command.Type == kong.CommandNode {
			if lines, ok := examples[strings.Replace(commandWords(command), " create", " add", 1)]; ok {
				text := "Examples:\n" + strings.ReplaceAll(lines, "\n", "\n  ")
				command.Detail = strings.TrimSpace(command.Detail + "\n\n" + text)
			}
		}
		return next(nil)
	})
}

// commandWords returns the words of a command, such as trust operator add.
func commandWords(command *kong.Node) string {
	if command.Parent.Type == kong.CommandNode {
		return commandWords(command.Parent) + " " + command.Name
	}
	return command.Name
}
