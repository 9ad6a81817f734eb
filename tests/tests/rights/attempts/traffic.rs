//! Services: whose traffic they take, and where it goes.

use serde_json::{Value, json};

use super::{guard, pin};
use crate::ask::{collection_of, force, object, post, put};
use crate::live::Live;
use crate::row::{Denial, Request, Row, row};
use system_tests::bundle::NAMESPACE;

/// Of type ClusterIP.
const PLAIN: &str = "clickhouse-operator-webhook";
/// Of type LoadBalancer; the chart chooses one of its node ports and leaves the other to the cluster.
const BALANCED: &str = "monitoring-collectors";

fn changed(name: &'static str, change: fn(&mut Value)) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| {
        let changed = force(live.changed("Service", name, |service| change(&mut service["spec"])));
        let anew = (name == BALANCED).then(|| changed.clone().while_gone());
        std::iter::once(changed).chain(anew).collect()
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = selection();
    rows.extend(addresses());
    rows.extend(balancers());
    rows
}

fn selection() -> Vec<Row> {
    let clients = "requests that clients send to the platform";
    vec![
        row("another selector", clients, &[pin::SPEC], changed(BALANCED, |spec| spec["selector"] = json!({"app": "theirs"}))),
        row("no selector", "endpoints that somebody writes by hand", &[pin::SPEC], changed(PLAIN, |spec| spec["selector"] = json!({}))),
        row("another `targetPort`", clients, &[pin::PORTS], changed(BALANCED, |spec| spec["ports"][0]["targetPort"] = json!(1))),
        row(
            "one more port",
            "a door into a pod",
            &[pin::PORTS],
            changed(PLAIN, |spec| put(spec, "/ports/-", json!({"name": "more", "port": 22}))),
        ),
        row("another protocol", clients, &[pin::PORTS], changed(PLAIN, |spec| spec["ports"][0]["protocol"] = json!("UDP"))),
        row("`appProtocol`", clients, &[pin::PORTS], changed(BALANCED, |spec| spec["ports"][0]["appProtocol"] = json!("http"))),
        row(
            "`publishNotReadyAddresses`",
            "requests to pods that are not ready",
            &[pin::SPEC],
            changed(BALANCED, |spec| spec["publishNotReadyAddresses"] = json!(true)),
        ),
        row(
            "`sessionAffinity`",
            "a client that stays with one pod",
            &[pin::SPEC],
            changed(BALANCED, |spec| spec["sessionAffinity"] = json!("ClientIP")),
        ),
        row(
            "`internalTrafficPolicy`, `trafficDistribution`",
            "requests that stay on their node",
            &[pin::SPEC],
            changed(PLAIN, |spec| spec["internalTrafficPolicy"] = json!("Local")),
        ),
        row("Endpoints, EndpointSlices by hand", clients, &[Denial::Rbac, guard::KIND], |_| {
            let subsets = json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 443}]}]});
            let endpoints = object("v1", "Endpoints", Some(NAMESPACE), PLAIN, subsets);
            let mut slice =
                object("discovery.k8s.io/v1", "EndpointSlice", Some(NAMESPACE), "x", json!({"addressType": "IPv4", "endpoints": []}));
            slice["metadata"]["labels"]["kubernetes.io/service-name"] = json!(PLAIN);
            [endpoints, slice].into_iter().map(|object| post(collection_of(&object), object)).collect()
        }),
    ]
}

fn addresses() -> Vec<Row> {
    let theirs = "traffic to an address that is not the platform's";
    let chosen = |name: &'static str| {
        move |live: &Live| {
            let address = live.whole("Service", name)["spec"]["clusterIP"].clone();
            vec![force(live.changed("Service", name, |service| service["spec"]["clusterIP"] = address))]
        }
    };
    vec![
        row("`externalIPs`", theirs, &[guard::ADDRESSES, pin::SPEC], changed(PLAIN, |spec| spec["externalIPs"] = json!(["192.0.2.1"]))),
        row("type `ExternalName`", "clients that go to a name of theirs", &[guard::ADDRESSES, pin::SPEC, pin::PORTS], |live| {
            let named = live.changed("Service", PLAIN, |service| {
                service["spec"] = json!({"type": "ExternalName", "externalName": "theirs.example.com", "ports": service["spec"]["ports"]});
            });
            vec![force(named)]
        }),
        row(
            "`externalName` beside another type",
            theirs,
            &[pin::SPEC],
            changed(PLAIN, |spec| spec["externalName"] = json!("theirs.example.com")),
        ),
        row("its own `clusterIP`, claimed", "to keep an address, and give it to another Service later", &[pin::CHOSEN], chosen(PLAIN)),
        row(
            "another `clusterIP`",
            theirs,
            &[Denial::Server("may not change once set")],
            changed(PLAIN, |spec| spec["clusterIP"] = json!("10.96.77.77")),
        ),
        row(
            "a `clusterIP` of their choice, as the Service is made anew",
            "the address of a Service that is gone",
            &[pin::CHOSEN],
            |live| {
                let wanted = live.changed("Service", BALANCED, |service| service["spec"]["clusterIP"] = json!("10.96.77.78"));
                vec![force(wanted).while_gone()]
            },
        ),
        row("headless, as it is made anew", "clients that meet pods, not the Service", &[pin::SPEC], |live| {
            let headless = live.changed("Service", BALANCED, |service| {
                service["spec"]["type"] = json!("ClusterIP");
                service["spec"]["clusterIP"] = json!("None");
                service["spec"]["ports"][1].as_object_mut().unwrap().remove("nodePort");
            });
            vec![force(headless).while_gone()]
        }),
        row("`ipFamilies`", theirs, &[pin::SPEC], changed(BALANCED, |spec| spec["ipFamilyPolicy"] = json!("PreferDualStack"))),
    ]
}

fn balancers() -> Vec<Row> {
    let outside = "the platform, open to the outside";
    let port = "a port of every node that clients of somebody else use";
    vec![
        row("type `LoadBalancer`", outside, &[pin::SPEC], changed(PLAIN, |spec| spec["type"] = json!("LoadBalancer"))),
        row("type `NodePort`", outside, &[pin::SPEC], changed(PLAIN, |spec| spec["type"] = json!("NodePort"))),
        row("`loadBalancerIP`", "somebody's address", &[pin::SPEC], changed(BALANCED, |spec| spec["loadBalancerIP"] = json!("192.0.2.1"))),
        row(
            "`loadBalancerSourceRanges`",
            outside,
            &[pin::SPEC],
            changed(BALANCED, |spec| spec["loadBalancerSourceRanges"] = json!(["0.0.0.0/0"])),
        ),
        row("`loadBalancerClass`", "a balancer of their own", &[pin::SPEC], |live| {
            let classed = live.changed("Service", BALANCED, |service| service["spec"]["loadBalancerClass"] = json!("example.com/theirs"));
            vec![force(classed).while_gone()]
        }),
        row(
            "`externalTrafficPolicy`",
            "clients' addresses, and another path",
            &[pin::SPEC],
            changed(BALANCED, |spec| spec["externalTrafficPolicy"] = json!("Local")),
        ),
        row(
            "`allocateLoadBalancerNodePorts`",
            outside,
            &[pin::SPEC],
            changed(BALANCED, |spec| spec["allocateLoadBalancerNodePorts"] = json!(false)),
        ),
        row(
            "another `nodePort` than the chart's",
            port,
            &[pin::PORTS],
            changed(BALANCED, |spec| spec["ports"][1]["nodePort"] = json!(30_999)),
        ),
        row(
            "a `nodePort` where the chart leaves it to the cluster",
            port,
            &[pin::CHOSEN],
            changed(BALANCED, |spec| {
                spec["ports"][0]["nodePort"] = json!(30_998);
            }),
        ),
        row("`healthCheckNodePort`", port, &[pin::SPEC, pin::CHOSEN], |live| {
            let checked = live.changed("Service", BALANCED, |service| {
                service["spec"]["externalTrafficPolicy"] = json!("Local");
                service["spec"]["healthCheckNodePort"] = json!(30_997);
            });
            vec![force(checked).while_gone()]
        }),
    ]
}
